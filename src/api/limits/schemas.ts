import { z } from 'zod';
import { answeredInstant, ignored, limitIdText, text, whole } from '../http/common-schemas.ts';

const fields = {
  description: text(1000).nullable(),
  maxRunning: whole(1, 10_000).meta({
    description:
      'So many of the runs that name it may be under way at once: with an attempt in flight, or `running`.',
    example: 3,
  }),
};

export const limitInput = z
  .strictObject({
    id: limitIdText.optional(),
    description: fields.description.default(null),
    maxRunning: fields.maxRunning,
    running: ignored,
    waiting: ignored,
    version: ignored,
    updatedAt: ignored,
  })
  .meta({ id: 'LimitDefinition' });

export const limit = z
  .object({
    id: limitIdText,
    ...fields,
    running: z.int().meta({ description: 'Runs that are under way.' }),
    waiting: z.int().meta({ description: 'Runs that are due, and not under way.' }),
    version: z.int(),
    updatedAt: answeredInstant,
  })
  .meta({ id: 'Limit' });
