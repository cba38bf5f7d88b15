import { z } from 'zod';
import { RUN_STATUSES } from '../../core/runs/run.ts';
import { whole } from '../http/common-schemas.ts';
import { attemptError, runFields, runResult } from '../runs/schemas.ts';
import { queue } from '../targets/schemas.ts';

export const queueParams = z.strictObject({ queue });

export const workerIdText = z
  .string()
  // eslint-disable-next-line no-control-regex -- these are what it refuses; not by \\P{Cc}, which few tools read
  .regex(/^[^\x00-\x1f\x7f-\x9f]{1,255}$/u, { error: 'must be 1 to 255 printable characters' })
  .meta({
    description: 'Any name that no other worker has, the same in each of its calls.',
    example: 'reports-7',
  });

export const claimInput = z
  .strictObject({
    workerId: workerIdText,
    max: whole(1, 100).default(1).meta({ description: 'At most that many runs.' }),
    leaseSeconds: z.number().min(1).max(86_400).default(60).meta({
      description:
        'For how long they are leased; each `/heartbeat` extends that by as much. A lease that runs out is an attempt of unknown outcome.',
    }),
    waitSeconds: z.number().min(0).max(60).default(0).meta({
      description: 'For how long to wait for the first of them where there is none yet.',
    }),
  })
  .meta({ id: 'Claim', description: 'A worker asks for work.' });

const dependency = z
  .object({
    runId: z.string(),
    status: z.enum(RUN_STATUSES),
    error: attemptError.nullable(),
    result: runResult.nullable(),
  })
  .meta({ id: 'Dependency', description: 'How a run ended that another one depended on.' });

const claimedRun = z
  .object({
    ...runFields,
    dependencies: z.array(dependency).optional().meta({
      description:
        'Of runs that had some, the one included that an `after` run follows; without those that are not kept any more.',
    }),
  })
  .meta({ id: 'ClaimedRun', description: 'A run that is leased to the worker that asked.' });

export const claimedRuns = z.object({
  items: z.array(claimedRun).meta({ description: 'High priorities first, then the longest due.' }),
});

export const queues = z.object({
  items: z.array(
    z
      .object({
        queue: z.string(),
        pending: z.int().meta({ description: 'Due, and not claimed.' }),
        scheduled: z.int().meta({ description: 'Recorded, and not due yet: later runs and retries.' }),
        running: z.int().meta({ description: 'Leased to workers.' }),
        oldestPendingSeconds: z
          .number()
          .meta({ description: 'How long the oldest pending run has been due; 0 where there is none.' }),
        workers: z.int().meta({ description: 'That asked for work within the last five minutes.' }),
      })
      .meta({ id: 'Queue' }),
  ),
});
