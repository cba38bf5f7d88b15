import { z } from 'zod';
import { refused } from './common-schemas.ts';

/** A whole number of a query. */
export function queryInteger<Fallback extends number | undefined>(
  min: number,
  max: number,
  fallback: Fallback,
) {
  const read = wholeOfText(min, max);
  return z
    .string()
    .optional()
    .transform((value, context): number | Fallback => (value === undefined ? fallback : read(value, context)))
    .meta({
      type: 'integer',
      minimum: min,
      maximum: max,
      description: fallback === undefined ? undefined : `${fallback} where it is not given.`,
    });
}

/** The same, of what must be given. */
export function queryWhole(min: number, max: number, meta: { description: string; example: number }) {
  return z
    .string()
    .transform(wholeOfText(min, max))
    .meta({
      type: 'integer',
      minimum: min,
      maximum: max,
      ...meta,
      ...(max > 2 ** 31 && { format: 'int64' }),
    });
}

function wholeOfText(min: number, max: number) {
  return (value: string, context: z.core.$RefinementCtx): number => {
    const number = /^\d{1,16}$/.test(value) ? Number(value) : NaN;
    if (number >= min && number <= max) return number;
    return refused(context, `must be a whole number from ${min} to ${max}`);
  };
}

export const queryBoolean = z
  .string()
  .refine((value) => value === 'true' || value === 'false', { error: 'must be true or false' })
  .transform((value) => value === 'true')
  .meta({ type: 'boolean' });
