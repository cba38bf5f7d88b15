import type { RunExpired } from '../../core/events.ts';
import { isoInstant } from '../../core/instant.ts';
import type { RunStatus } from '../../core/runs/run.ts';
import type { Logger } from './logger.ts';

const MAX_NAMED = 10;

/**
 * One warning for all runs that a dead worker left; below that level a line for each, except for runs about which
 * nothing more is done.
 */
export function logExpired(logger: Logger, runs: readonly RunExpired[]): void {
  const count = (status: RunStatus) => runs.filter(({ settlement }) => settlement.status === status).length;
  const workers = [...new Set(runs.flatMap(({ workerId }) => workerId ?? []))].slice(0, MAX_NAMED);
  const became = { again: count('pending'), failed: count('failed'), unknown: count('unknown') };
  if (runs.length > 1) {
    logger.warn(
      { runs: runs.length, ...became, workers },
      'no worker reported on these runs in time: tried again, or ended as said here',
    );
  }
  for (const { settlement, ...run } of runs) {
    const { status, error, retryAt, uncertain } = settlement;
    const fields = { ...run, error };
    if (status === 'failed')
      logger.warn(fields, 'run failed: it was not heard of in time, and no attempt is left');
    else if (status === 'unknown')
      logger.warn(
        fields,
        'the outcome of a run stays unknown: it was not heard of in time, and is not repeated',
      );
    else {
      const at = retryAt === null ? null : isoInstant(retryAt);
      const follows = uncertain ? 'its target is asked what became of it' : 'another attempt follows';
      const level = runs.length > 1 ? 'info' : 'warn';
      logger[level]({ ...fields, retryAt: at }, `a run was not heard of in time; ${follows}`);
    }
  }
}
