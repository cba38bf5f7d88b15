import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Loopback, serveHttp, withBody } from '../../support/loopback.ts';
import { COMPLETION_TIMEOUT_SECONDS } from './graph-checker.ts';
import type { About, GraphApi } from './graph-api.ts';
import type { Asked, Delivery, DependencyOutcome } from './graph-history.ts';
import { pairOf } from './graph-plan.ts';
import type { Random } from '../random.ts';
import { senderOf } from '../checker/history.ts';

interface GraphReceiverDeps {
  /** By ref. */
  asked: ReadonlyMap<string, Asked>;
  deliveries: Delivery[];
  api: GraphApi;
  random: Random;
}

/** Of a handoff's body, and of a claimed run. */
interface ShownRun {
  runId: string;
  status: string;
  error: { kind: string } | null;
  result: { body: string } | null;
}

function outcomesOf(dependencies: readonly ShownRun[] | undefined): DependencyOutcome[] {
  return (dependencies ?? []).map(({ runId, status, error, result }) => ({
    runId,
    status,
    errorKind: error?.kind ?? null,
    body: result?.body ?? null,
  }));
}

/** How long the first of two waits for the other. */
const WAIT_LIMIT_MS = 1_000;
/** Longer than its completion timeout, in all. */
const BEATS = 5;
const KEEP_ALIVE_MS = 30_000;

/** The target of all runs that are sent: it deals with each as its client wants it. In the campaign's own process, for the one clock. */
export function startGraphReceiver(deps: GraphReceiverDeps): Promise<Loopback> {
  const { asked, deliveries, api, random } = deps;
  /** How often each ref arrived. */
  const arrivals = new Map<string, number>();

  /** Those that the first of two waits for, by pair. */
  const expected = new Map<string, () => void>();

  /** Resolves when the other one of the pair is there as well; it may not come for long. */
  async function theOther(pair: string): Promise<void> {
    const arrived = expected.get(pair);
    if (arrived) {
      arrived();
      return;
    }
    const { promise, resolve } = Promise.withResolvers<undefined>();
    expected.set(pair, () => resolve(undefined));
    await Promise.race([promise, sleep(WAIT_LIMIT_MS)]);
  }

  async function arrive(request: IncomingMessage, text: string, response: ServerResponse): Promise<void> {
    const at = performance.now();
    const body = JSON.parse(text) as {
      runId: string;
      attempt: number;
      dependencies?: ShownRun[];
      payload: { ref: string };
    };
    const { runId, attempt, payload } = body;
    const delivery: Delivery = {
      runId,
      attempt,
      at,
      sender: senderOf(request.socket.remoteAddress ?? ''),
      outcomes: outcomesOf(body.dependencies),
      answer: null,
      lease: null,
    };
    deliveries.push(delivery);
    const run = asked.get(payload.ref);
    if (!run) {
      answer(delivery, response, 404);
      return;
    }
    const arrived = (arrivals.get(run.ref) ?? 0) + 1;
    arrivals.set(run.ref, arrived);
    const manner = arrived === 1 || run.manner === 'early' ? run.manner : 'plain';
    const about = { runId, attempt, workerId: null };
    if (run.kind === 'http') await actAtOnce({ ...run, manner }, delivery, response);
    else await callBack({ ...run, manner }, about, delivery, response);
  }

  async function actAtOnce({ ref, manner, fate }: Asked, delivery: Delivery, response: ServerResponse) {
    await (manner === 'together' ? theOther(pairOf(ref)) : sleep(random.between(0, 30)));
    const statusCode = manner === 'flaky' ? 503 : fate === 'succeeded' ? 200 : 400;
    answer(delivery, response, statusCode, JSON.stringify({ ref }));
  }

  async function callBack(run: Asked, about: About, delivery: Delivery, response: ServerResponse) {
    const { ref, manner, fate } = run;
    const end = () => api.end(about, fate, ref);
    if (manner === 'early') {
      // Its sender may die of it, or be dead: the answer must not wait for ever.
      await Promise.race([end(), sleep(3_000)]);
    }
    answer(delivery, response, 202);
    if (manner === 'early') return;
    if (manner === 'never') return;
    if (manner === 'late') await sleep(COMPLETION_TIMEOUT_SECONDS * 1000 + random.between(200, 2_000));
    else if (manner === 'plain') await sleep(random.between(0, 150));
    else if (manner === 'together') await theOther(pairOf(ref));
    else if (!(await worksLong(api, about))) return;
    await end();
  }

  function answer(delivery: Delivery, response: ServerResponse, statusCode: number, body = '{}'): void {
    const { socket } = response;
    const said = { statusCode, at: performance.now(), sent: false };
    delivery.answer = said;
    response.on('finish', () => (said.sent = socket?.destroyed === false));
    response.writeHead(statusCode, { 'content-type': 'application/json' }).end(body);
  }

  const receive = withBody((request, text, response) => {
    arrive(request, text, response).catch((error: unknown) => {
      api.refusals.push(`not a handoff: ${String(error)}`);
    });
  });
  return serveHttp(receive, KEEP_ALIVE_MS);
}

/** False: it was told not to go on. */
async function worksLong(api: GraphApi, about: About): Promise<boolean> {
  for (let beat = 0; beat < BEATS; beat += 1) {
    await sleep(700);
    if (!(await api.beat(about))) return false;
  }
  return true;
}

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
      if (answer && answer.status !== 503) api.refusals.push(`claim: ${answer.status} ${JSON.stringify(answer.body)}`);
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
    const work: Promise<void> = workOn(payload.ref, { runId, attempt, workerId }).finally(() => atWork.delete(work));
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
