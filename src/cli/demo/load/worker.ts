import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../../runtime/clock.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import type { Deliveries } from './delivery.ts';
import { QUEUE } from './schedule-mix.ts';

/** Reports that work is done, and does the work of the queue, on whichever instance is there. */
export interface Worker {
  /** Says that the run succeeded, again and again until an instance has heard it. */
  complete(runId: string): void;
  /** Resolves when it has stopped; what was not reported is not any more. */
  stop(): Promise<void>;
}

interface Options {
  clock: Clock;
  client: ApiClient;
  deliveries: Deliveries;
}

/** How long a run is the worker's. An answer that was lost with its instance costs as much: then the run is offered again. */
const LEASE_SECONDS = 5;
const WAIT_SECONDS = 2;
const MOST_AT_ONCE = 50;
const AGAIN_MS = 250;
const WORKER_ID = 'demo-worker';

interface ClaimedRun {
  id: string;
  scheduleId: string;
  scheduledFor: string;
  attempts: number;
}

export function startWorker({ clock, client, deliveries }: Options): Worker {
  const stopping = new AbortController();
  const { signal } = stopping;

  /** `as`: who speaks for a run that it has claimed; a target that speaks for its run has no such name. */
  const report = async (runId: string, as: { workerId?: string }) => {
    while (!signal.aborted) {
      const answer = await client
        .ask('POST', `runs/${runId}/complete`, { status: 'succeeded', ...as })
        .catch(() => null);
      if (answer?.status === 200) return;
      await wait(signal);
    }
  };

  const work = async () => {
    while (!signal.aborted) {
      const input = {
        ...{ workerId: WORKER_ID, max: MOST_AT_ONCE },
        ...{ leaseSeconds: LEASE_SECONDS, waitSeconds: WAIT_SECONDS },
      };
      const answer = await client.call('POST', `queues/${QUEUE}/claim`, input).catch(() => null);
      if (answer === null) await wait(signal);
      for (const run of (answer as { items: ClaimedRun[] } | null)?.items ?? []) {
        const { id: runId, scheduleId, attempts: attempt } = run;
        const [at, scheduledFor] = [clock.now(), Date.parse(run.scheduledFor)];
        deliveries.add({ scheduleId, scheduledFor, runId, attempt, key: runId, at, endedAt: at });
        void report(runId, { workerId: WORKER_ID });
      }
    }
  };
  const worked = work();
  return {
    complete: (runId) => void report(runId, {}),
    stop: async () => {
      stopping.abort();
      await worked;
    },
  };
}

async function wait(signal: AbortSignal): Promise<void> {
  await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
}
