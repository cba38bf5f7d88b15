import type { z } from 'zod';
import { listQueues } from '../../store/queues/queue-workers.ts';
import type { PulledRun } from '../../store/queues/pulled-runs.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { TAGS } from '../http/plugins/openapi.ts';
import { answerRun } from '../runs/answers.ts';
import { whenGone } from '../http/when-gone.ts';
import { BODY_PROBLEMS, json, problems } from '../http/response-schemas.ts';
import { claimInput, claimedRuns, queueParams, queues } from './schemas.ts';

const tags = [TAGS.queues];

export function addQueueRoutes(api: Api, deps: ApiDeps): void {
  addClaimRoute(api, deps);
  addListRoute(api, deps);
}

function addClaimRoute(api: Api, { pullQueues }: ApiDeps): void {
  api.post(
    '/queues/:queue/claim',
    {
      config: { role: 'worker', pace: 'waits', audits: [] },
      schema: {
        operationId: 'claimRuns',
        summary: 'Lease runs to a worker: at once where there are some, else as soon as there are',
        tags,
        params: queueParams,
        body: claimInput,
        response: {
          200: json('The runs, or none', claimedRuns),
          ...problems(...BODY_PROBLEMS),
        },
      },
    },
    async ({ params: { queue }, body, caller: { name } }, reply): Promise<z.output<typeof claimedRuns>> => {
      const runs = await pullQueues.claim({ ...body, queue, caller: name ?? '', signal: whenGone(reply) });
      // The next call should go to an instance that stays.
      if (pullQueues.isStopping()) void reply.header('Connection', 'close');
      return { items: runs.map(answerPulled) };
    },
  );
}

function addListRoute(api: Api, { database }: ApiDeps): void {
  api.get(
    '/queues',
    {
      config: { role: 'viewer' },
      schema: {
        operationId: 'listQueues',
        summary: 'The queues that have runs, or whose workers were seen lately; by name',
        tags,
        response: { 200: json('All queues', queues), ...problems(400) },
      },
    },
    async (): Promise<z.output<typeof queues>> => ({ items: await database.run((db) => listQueues(db)) }),
  );
}

function answerPulled({ run, dependencies }: PulledRun): z.output<typeof claimedRuns>['items'][number] {
  return { ...answerRun(run), ...(dependencies.length === 0 ? {} : { dependencies }) };
}
