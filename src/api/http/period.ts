import type { FastifyRequest } from 'fastify';
import type { Fault } from './problem.ts';
import { queryInstant } from './common-schemas.ts';

/** The period of a call, by `scheduledFor`: `from` inclusive, `to` exclusive. */
export const periodQuery = {
  from: queryInstant.optional().meta({ description: 'Inclusive.', example: '2026-11-20T00:00:00Z' }),
  to: queryInstant.optional().meta({ description: 'Exclusive.', example: '2026-11-21T00:00:00Z' }),
};

/** For `alsoCheck`: an empty period is a mistake of the caller. */
export function emptyPeriod({ query }: FastifyRequest): Fault[] {
  const { from, to } = query as Record<string, unknown>;
  const [first, end] = [queryInstant.safeParse(from), queryInstant.safeParse(to)];
  if (!first.success || !end.success || first.data < end.data) return [];
  return [{ path: 'to', message: 'must be later than from' }];
}
