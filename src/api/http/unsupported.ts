import { z } from 'zod';

/**
 * A field of the contract that this version does not bring: answered with the value that describes what happens, and
 * accepted with no other, so that no caller relies on what is not done.
 */
export function unsupported<const Value extends string | number | null>(value: Value) {
  return z
    .literal(value, {
      error: `is not supported by this version; only ${JSON.stringify(value)} is accepted`,
    })
    .optional()
    .meta({ description: 'Not supported by this version: no other value is accepted.' });
}
