import { z } from 'zod';
import type { NamedNoun } from '../../core/events.ts';
import { text } from '../http/common-schemas.ts';
import { limitQuery, scheduleCursor } from '../http/pages.ts';

export const namedQuery = z.strictObject({
  q: text(1000).optional().meta({ description: 'Part of the id or the description, in any letter case.' }),
  limit: limitQuery,
  cursor: scheduleCursor.optional(),
});

const shown = z.unknown().meta({ description: 'Null: there is none. Secret values are masked.' });

/** `Noun`: with which the names in the document begin. */
export function namedDiff(noun: NamedNoun, Noun: string, id: z.ZodType) {
  return z
    .object({
      id,
      change: z.enum(['created', 'updated', 'unchanged']),
      fields: z
        .array(z.object({ path: z.string(), before: shown, after: shown }))
        .meta({ description: 'The changed fields of an update; `path` is a JSON pointer.' }),
    })
    .meta({ id: `${Noun}Diff`, description: `What a write makes of a ${noun}.` });
}
