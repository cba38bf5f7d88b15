import { z } from 'zod';

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
