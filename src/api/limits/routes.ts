import type { z } from 'zod';
import { isoInstant } from '../../core/instant.ts';
import { LIMIT_KIND } from '../../operations/limit-changes.ts';
import type { Limit } from '../../store/limits/rows.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { limitIdText } from '../http/common-schemas.ts';
import { addNamedRoutes } from '../named/named-routes.ts';
import { limit as answered, limitInput } from './schemas.ts';

export function addLimitRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    ...{
      kind: LIMIT_KIND,
      list: 'limits',
      id: limitIdText,
      input: limitInput,
      answered,
      answer: answerLimit,
    },
    resolve: ({ description, maxRunning }) => ({ content: { description, maxRunning } }),
    summaries: {
      get: 'One limit, and how many of its runs are under way and wait; its ETag is its version',
      put: 'Create a limit, or replace it; a smaller `maxRunning` stops nothing that is under way',
      delete: 'Delete a limit that no schedule and no open run names',
    },
    refusals: [],
  });
}

function answerLimit(stored: Limit): z.output<typeof answered> {
  const { id, description, maxRunning, running, waiting, version, updatedAt } = stored;
  return { id, description, maxRunning, running, waiting, version, updatedAt: isoInstant(updatedAt) };
}
