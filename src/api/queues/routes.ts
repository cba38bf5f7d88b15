import { z } from 'zod';
import { listQueues } from '../../store/queues/queue-workers.ts';
import { isParentRun } from '../../core/runs/parent.ts';
import type { PulledRun } from '../../store/queues/pull-claims.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { answerRun, attemptError, runFields, runResult } from '../runs/answers.ts';
import { addRoute, json, TAGS } from '../http/routes.ts';
import { runStatus, whole, workerIdText } from '../http/common-schemas.ts';
import { queue } from '../targets/schemas.ts';

const queueParams = z.strictObject({ queue });

const claimInput = z
  .strictObject({
    workerId: workerIdText,
    max: whole(1, 100).default(1).describe('At most that many runs.'),
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
    status: runStatus,
    error: attemptError.nullable(),
    result: runResult.nullable(),
  })
  .meta({ id: 'Dependency', description: 'How a run ended that another one depended on.' });

const lateParent = z
  .object({
    runId: z.null(),
    scheduleId: z.string(),
    status: z.literal('late'),
    reason: z.null(),
    error: z.null(),
    result: z.null(),
  })
  .meta({ id: 'LateParent', description: 'The schedule that is late. No run has ended.' });

const claimedRun = z
  .object({
    ...runFields,
    dependencies: z.array(dependency).optional().meta({
      description:
        'Of runs that had some, the one included that an `after` run follows; without those that are not kept any more.',
    }),
    parent: lateParent.optional().describe('Of an `after` run that follows a late schedule.'),
  })
  .meta({ id: 'ClaimedRun', description: 'A run that is leased to the worker that asked.' });

const claimedRuns = z.object({
  items: z.array(claimedRun).describe('High priorities first, then the longest due.'),
});

export const queues = z.object({
  items: z.array(
    z
      .object({
        queue: z.string(),
        pending: z.int().describe('Due, and not claimed.'),
        scheduled: z.int().describe('Recorded, and not due yet: later runs and retries.'),
        running: z.int().describe('Leased to workers.'),
        oldestPendingSeconds: z
          .number()
          .describe('How long the oldest pending run has been due; 0 where there is none.'),
        workers: z.int().describe('That asked for work within the last five minutes.'),
      })
      .meta({ id: 'Queue' }),
  ),
});

const tags = [TAGS.queues];

export function addQueueRoutes(api: Api, deps: ApiDeps): void {
  addClaimRoute(api, deps);
  addListRoute(api, deps);
}

function addClaimRoute(api: Api, { pullQueues }: ApiDeps): void {
  addRoute(api, {
    route: 'POST /queues/:queue/claim',
    operationId: 'claimRuns',
    config: { role: 'worker', scope: { name: 'queue' }, pace: 'waits', audits: [] },
    summary: 'Lease runs to a worker: at once where there are some, else as soon as there are',
    tags,
    params: queueParams,
    body: claimInput,
    answers: { 200: json('The runs, or none', claimedRuns) },
    handler: async (
      { params: { queue }, body, caller: { name, scope }, patience },
      reply,
    ): Promise<z.output<typeof claimedRuns>> => {
      const runs = await pullQueues.claim({
        ...body,
        queue,
        scope,
        caller: name ?? '',
        signal: patience.gone,
        enough: patience.enough,
      });
      const refusal = runs.length === 0 ? patience.refusal() : null;
      if (refusal !== null) throw refusal;
      // The next call should go to an instance that stays.
      if (pullQueues.isStopping()) void reply.header('Connection', 'close');
      return { items: runs.map(answerPulled) };
    },
  });
}

function addListRoute(api: Api, { database }: ApiDeps): void {
  addRoute(api, {
    route: 'GET /queues',
    operationId: 'listQueues',
    config: { role: 'viewer', scope: 'itself' },
    summary: 'The queues that have runs, or whose workers were seen lately; by name',
    tags,
    answers: { 200: json('All queues', queues) },
    handler: async ({ caller: { scope } }): Promise<z.output<typeof queues>> => ({
      items: await database.run((db) => listQueues(db, scope)),
    }),
  });
}

function answerPulled({ run, dependencies, parent }: PulledRun): z.output<typeof claimedRuns>['items'][number] {
  return {
    ...answerRun(run),
    ...(dependencies.length === 0 ? {} : { dependencies }),
    ...(parent === null || isParentRun(parent) ? {} : { parent }),
  };
}
