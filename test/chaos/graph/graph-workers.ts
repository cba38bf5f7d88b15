import { setTimeout as sleep } from 'node:timers/promises';
import type { GraphApi } from './graph-api.ts';
import type { Asked, Delivery } from './checker/graph-history.ts';
import { type ShownRun, outcomesOf, worksLong } from './graph-receiver.ts';
import type { Random } from '../random.ts';

/** Pull workers, all of one queue: they wait at any instance, work on what they get, hold on to it for too long, or drop it. */
interface GraphWorkers {
  stop(): Promise<void>;
}

interface GraphWorkersDeps {
  /** By ref. */
  asked: ReadonlyMap<string, Asked>;
  deliveries: Delivery[];
  api: GraphApi;
  random: Random;
}

export const QUEUE = 'graph';
const WORKERS = 6;
const LEASE_SECONDS = 3;
/** Some wait for work, some ask again and again: of these it is better known when their leases began. */
const WAITS_SECONDS = [0, 0, 1, 5];
const MOST = 20;

interface ClaimedRun {
  id: string;
  attempts: number;
  payload: { ref: string };
  dependencies?: ShownRun[];
}

export function startGraphWorkers({ asked, deliveries, api, random }: GraphWorkersDeps): GraphWorkers {
  let stopping = false;
  const claims = new Map<string, number>();
  const atWork = new Set<Promise<void>>();

  async function turn(workerId: string): Promise<void> {
    const waitSeconds = random.pick(WAITS_SECONDS);
    const max = Math.ceil(random.between(0, MOST));
    const askedAt = performance.now();
    const request = { workerId, max, leaseSeconds: LEASE_SECONDS, waitSeconds };
    const answer = await api.post(`/queues/${QUEUE}/claim`, request);
    const at = performance.now();
    if (answer?.status !== 200) {
      if (answer && answer.status !== 503)
        api.refusals.push(`claim: ${answer.status} ${JSON.stringify(answer.body)}`);
      await sleep(100);
      return;
    }
    const { items } = answer.body as { items: ClaimedRun[] };
    for (const run of items) take(run, workerId, { at, askedAt });
    if (items.length === 0 && waitSeconds === 0) await sleep(100);
  }

  function take(run: ClaimedRun, workerId: string, { at, askedAt }: { at: number; askedAt: number }): void {
    const { id: runId, attempts: attempt, payload, dependencies } = run;
    const lease = { askedAt, seconds: LEASE_SECONDS };
    deliveries.push({
      runId,
      attempt,
      at,
      sender: workerId,
      outcomes: outcomesOf(dependencies),
      answer: null,
      lease,
    });
    const work: Promise<void> = workOn(payload.ref, { runId, attempt, workerId }).finally(() =>
      atWork.delete(work),
    );
    atWork.add(work);
  }

  async function workOn(ref: string, about: Parameters<GraphApi['end']>[0]): Promise<void> {
    const run = asked.get(ref);
    if (!run) return;
    const claimed = (claims.get(ref) ?? 0) + 1;
    claims.set(ref, claimed);
    const manner = claimed === 1 ? run.manner : 'plain';
    if (manner === 'never') return;
    if (manner === 'late') await sleep(LEASE_SECONDS * 1000 + random.between(200, 2_000));
    else if (manner === 'plain') await sleep(random.between(0, 100));
    else if (!(await worksLong(api, about))) return;
    await api.end(about, run.fate, ref);
  }

  const workers = Array.from({ length: WORKERS }, async (_, n) => {
    while (!stopping) await turn(`worker-${n}`);
  });
  return {
    stop: async () => {
      stopping = true;
      await Promise.all(workers);
      await Promise.all(atWork);
    },
  };
}
