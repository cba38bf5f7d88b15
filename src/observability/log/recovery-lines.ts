import { logExpired } from './expired-lines.ts';
import type { Lines } from '../handlers.ts';

export const RECOVERY_LINES = {
  instancesDeclaredDead: (logger, { instanceIds }) =>
    logger.warn({ instanceIds }, 'silent instances declared dead; their runs are taken over'),
  claimsDropped: (logger, { count }) =>
    logger.warn({ count }, 'unsent claims dropped: they are the others’ now'),
  runsTakenOver: (logger, { found, runs }) => {
    const count = (...verdicts: string[]) => runs.filter((run) => verdicts.includes(run.verdict)).length;
    const again = count('again');
    const unknown = count('unknown');
    const fields = { found, runs: runs.length, again, unknown, abandoned: runs.length - again - unknown };
    const instances = [...new Set(runs.map((run) => run.instanceId))];
    logger.warn({ ...fields, instances }, 'lost runs found: they go on, or ended as listed here');
    for (const { runId, scheduleId, instanceId, verdict } of runs) {
      const run = { runId, scheduleId, found, instanceId };
      if (verdict === 'unknown')
        logger.error(run, 'a run was lost while it was handed off; it stays unknown');
      else if (verdict !== 'again') logger.error({ ...run, reason: verdict }, 'a lost run was abandoned');
    }
  },
  takeOverRefused: (logger, { runId, error }) =>
    logger.error(
      { runId, error },
      'a lost run cannot be taken over: what stands in its row cannot be written',
    ),
  runsExpired: (logger, { runs }) => logExpired(logger, runs),
  expiryRefused: (logger, { runId, error }) =>
    logger.error(
      { runId, error },
      'a run that was not heard of in time cannot be written: something in its row is refused',
    ),
  waitingReleased: (logger, { count }) =>
    logger.warn({ count }, 'runs that waited for nothing any more were found; they go on'),
} satisfies Lines;
