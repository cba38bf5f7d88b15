import { z } from 'zod';
import { queryInstant, refused } from './common-schemas.ts';
import { isObject } from './json/json-body.ts';

/** A whole number of a query. */
export function queryInteger<Fallback extends number | undefined>(min: number, max: number, fallback: Fallback) {
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

/** The period of a call, by `scheduledFor`: `from` inclusive, `to` exclusive. */
export const periodQuery = {
  from: queryInstant.optional().meta({ description: 'Inclusive.', example: '2026-11-20T00:00:00Z' }),
  to: queryInstant.optional().meta({ description: 'Exclusive.', example: '2026-11-21T00:00:00Z' }),
};

/** Words of a known set, comma-separated. */
export function wordList<const Word extends string>(words: readonly Word[]) {
  return z
    .string()
    .transform((value, context) => {
      const named = value.split(',');
      if (named.every(isOneOf(words))) return [...new Set(named)];
      return refused(context, `must be a comma-separated list of ${words.join(', ')}`);
    })
    .meta({
      type: 'string',
      pattern: listPattern(words),
      description: `Comma-separated list (OR) of ${words.join(', ')}.`,
      example: words.slice(0, 2).join(','),
    });
}

function isOneOf<Word>(words: readonly Word[]) {
  return (value: unknown): value is Word => (words as readonly unknown[]).includes(value);
}

/** Words of a known set with commas between them. */
function listPattern(words: readonly string[]): string {
  const word = `(?:${words.join('|')})`;
  return `^${word}(?:,${word})*$`;
}

/** `key:value`; the key may be any text without a colon. */
export const LABEL = '^[^:]+:';

/** `key:value`; given more than once, all of them must match. */
export const labelQuery = z
  .preprocess(
    (value) => (typeof value === 'string' ? [value] : value),
    z.array(z.string().transform((value, context) => labelIn(value) ?? refused(context, 'must be key:value'))),
  )
  .meta({
    type: 'array',
    items: { type: 'string', pattern: LABEL },
    description: '`key:value`; repeated, all must match (AND).',
    example: ['team:billing'],
  });

function labelIn(label: unknown): readonly [key: string, value: string] | null {
  const colon = typeof label === 'string' ? label.indexOf(':') : -1;
  return typeof label === 'string' && colon > 0 ? [label.slice(0, colon), label.slice(colon + 1)] : null;
}

export const dryRunInput = z
  .boolean()
  .default(false)
  .describe('Change nothing: answer how much matches, and a sample.');

/** The answer of a bulk action on `items`. */
export function bulkAnswer(items: string, counted: string) {
  return z.object({
    matched: z.int().describe(`How many ${items} matched when it began${counted}.`),
    changed: z.int().describe('How many of them the call has changed; 0 in a dry run.'),
    remaining: z
      .int()
      .describe('How many of them are still to be changed: the same call, sent again, goes on with these.'),
    sample: z.array(z.string()).describe(`Ids of the first ${items} that match, at most 10.`),
  });
}

/** For the filter in a body: words of a set with a name, comma-separated as in a query, or as a list. */
export function filterWords<Word extends string>(word: z.ZodEnum<Readonly<Record<Word, Word>>>) {
  const words = word.options;
  return z
    .unknown()
    .transform((value, context): Word[] | undefined => {
      const named: unknown[] = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [];
      if (named.length > 0 && named.every(isOneOf(words))) return [...new Set(named)];
      return refused(context, `must be a comma-separated list, or a list, of ${words.join(', ')}`);
    })
    .optional()
    .meta({
      anyOf: [
        { type: 'string', pattern: listPattern(words) },
        { type: 'array', minItems: 1, items: { $ref: `#/components/schemas/${word.meta()?.id ?? ''}` } },
      ],
      description: `Comma-separated, or a list (OR): ${words.join(', ')}.`,
      example: words.slice(0, 2).join(','),
    });
}

/** `key:value`, or a list of them, all of which must match. */
export const filterLabels = z
  .unknown()
  .transform((value, context): (readonly [key: string, value: string])[] | undefined => {
    const given: unknown[] = Array.isArray(value) ? value : [value];
    const labels = given.flatMap((label) => {
      const read = labelIn(label);
      return read ? [read] : [];
    });
    if (given.length > 0 && labels.length === given.length) return labels;
    return refused(context, 'must be key:value, or a list of such');
  })
  .optional()
  .meta({
    anyOf: [
      { type: 'string', pattern: LABEL },
      { type: 'array', minItems: 1, items: { type: 'string', pattern: LABEL } },
    ],
    description: '`key:value`, or a list of them (AND).',
    example: 'team:billing',
  });

/** For `superRefine`: a filter that means everything is usually a mistake. */
export function namesSomething(filter: unknown, context: z.core.$RefinementCtx): void {
  if (!isObject(filter) || Object.values(filter).some((value) => value !== undefined)) return;
  context.addIssue({
    code: 'custom',
    path: [],
    message: 'must have at least one field: an empty filter matches everything',
  });
}
