import { z } from 'zod';
import { LABEL, listPattern, refused } from './common-schemas.ts';
import { isObject } from './json/json-body.ts';

export const dryRunInput = z
  .boolean()
  .default(false)
  .meta({ description: 'Change nothing: answer how much matches, and a sample.' });

/** The answer of a bulk action on `items`. */
export function bulkAnswer(items: string, counted: string) {
  return z.object({
    matched: z.int().meta({ description: `How many ${items} matched when it began${counted}.` }),
    changed: z.int().meta({ description: 'How many of them the call has changed; 0 in a dry run.' }),
    remaining: z.int().meta({
      description: 'How many of them are still to be changed: the same call, sent again, goes on with these.',
    }),
    sample: z.array(z.string()).meta({ description: `Ids of the first ${items} that match, at most 10.` }),
  });
}

/** For the filter in a body: words of a set with a name, comma-separated as in a query, or as a list. */
export function filterWords<Word extends string>(word: z.ZodEnum<Readonly<Record<Word, Word>>>) {
  const words = word.options;
  const known = (value: unknown): value is Word => (words as readonly unknown[]).includes(value);
  return z
    .unknown()
    .transform((value, context): Word[] | undefined => {
      const named: unknown[] =
        typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [];
      if (named.length > 0 && named.every(known)) return [...new Set(named)];
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
    const labels = given.flatMap((label) => labelIn(label));
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

function labelIn(label: unknown): (readonly [key: string, value: string])[] {
  const colon = typeof label === 'string' ? label.indexOf(':') : -1;
  return typeof label === 'string' && colon > 0 ? [[label.slice(0, colon), label.slice(colon + 1)]] : [];
}
