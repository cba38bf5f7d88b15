import { z } from 'zod';
import { text } from './common-schemas.ts';

export const storedLabelName = z.string().min(1).max(63);
/** A filter, `key:value`, ends the key at its first colon. */
export const labelName = storedLabelName.regex(/^[^:]*$/, { error: 'must not have a colon' });
export const MAX_LABELS = 32;

export function labelsNamed(name: z.ZodString) {
  return z
    .record(name, text(255))
    .refine((value) => Object.keys(value).length <= MAX_LABELS, {
      error: `must be at most ${MAX_LABELS} labels`,
    })
    .meta({ maxProperties: MAX_LABELS, example: { team: 'billing' } })
    .default({});
}
