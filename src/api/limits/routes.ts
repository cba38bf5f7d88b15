import { z } from 'zod';
import { LIMIT_KIND } from '../../operations/named-kinds.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { answeredInstant, ignored, limitIdText, text, whole } from '../http/common-schemas.ts';
import { answersOf } from '../http/routes.ts';
import { addNamedRoutes } from '../named/named-routes.ts';

const fields = {
  description: text(1000).nullable(),
  maxRunning: whole(1, 10_000).meta({
    description: 'So many of the runs that name it may be under way at once: with an attempt in flight, or `running`.',
    example: 3,
  }),
};

const limitInput = z
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
    running: z.int().describe('Runs that are under way.'),
    waiting: z.int().describe('Runs that are due, and not under way.'),
    version: z.int(),
    updatedAt: answeredInstant,
  })
  .meta({ id: 'Limit' });

export function addLimitRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    kind: LIMIT_KIND,
    list: 'limits',
    id: limitIdText,
    input: limitInput,
    answered: limit,
    answer: answersOf(limit),
    resolve: ({ description, maxRunning }) => ({ content: { description, maxRunning } }),
    summaries: {
      get: 'One limit, and how many of its runs are under way and wait; its ETag is its version',
      put: 'Create a limit, or replace it; a smaller `maxRunning` stops nothing that is under way',
      delete: 'Delete a limit that no schedule and no open run names',
    },
    refusals: [],
  });
}
