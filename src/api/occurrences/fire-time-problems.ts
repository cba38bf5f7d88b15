import { CronError } from '../../core/cron/cron.ts';
import { Problem } from '../http/problem.ts';

export function hasNoTimesOfItsOwn(id: string): Problem {
  return new Problem(
    409,
    `schedule ${id} fires when runs of other schedules end, at no times of its own; what came of it stands at /api/v1/schedules/${id}/runs`,
  );
}

/** The problem to throw if the fire times of a stored schedule cannot be computed. */
export function asUnplannable(id: string, error: unknown): unknown {
  if (!(error instanceof CronError)) return error;
  return new Problem(409, `schedule ${id} cannot be planned: ${error.message}`, { cause: error });
}
