import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, call } from '../../support/calls.ts';
import type { Asked, Fate, Word } from './graph-history.ts';
import type { Instance } from '../cluster/instance.ts';
import type { Random } from '../random.ts';
import { COMPLETION_TIMEOUT_SECONDS } from './graph-checker.ts';
import { QUEUE } from './graph-receiver.ts';

/** How clients reach the instances, some of which are dead at any time. */
export interface GraphApi {
  /** One try, at any of them; null: it was not answered, and may have been done. */
  post(path: string, body: unknown): Promise<Answer | null>;
  /** Says how a run ended, again and again until an instance answers. */
  end(about: About, say: Fate, result: string): Promise<void>;
  /** Says once that a run is worked on; false: it is not to go on. */
  beat(about: About): Promise<boolean>;
  readonly words: Word[];
  /** Answers that no such request may get. */
  readonly refusals: string[];
  /** Lets nothing be said again. */
  stop(): void;
}

export interface About {
  runId: string;
  attempt: number;
  workerId: string | null;
}

/** For a call that hangs: a killed instance resets its connections, and a slow one answers in the end. */
const LIMIT_MS = 60_000;
/** Doubles up to the other: all words and all ways to the database share one process, and nothing may keep it from passing them on. */
const AGAIN_MS = 150;
const AGAIN_AT_MOST_MS = 1_200;

export function createGraphApi(instances: readonly Instance[], random: Random): GraphApi {
  const words: Word[] = [];
  const refusals: string[] = [];
  let stopping = false;

  async function post(path: string, body: unknown): Promise<Answer | null> {
    try {
      return await call(`${random.pick(instances).url}/api/v1${path}`, 'POST', { body, limitMs: LIMIT_MS });
    } catch {
      return null;
    }
  }

  async function speak({ runId, attempt, workerId }: About, say: Word['say'], more: object) {
    const sentAt = performance.now();
    const action = say === 'alive' ? 'heartbeat' : 'complete';
    const answer = await post(`/runs/${runId}/${action}`, { attempt, workerId, ...more });
    const statusCode = answer?.status ?? null;
    const isHeld = (answer?.body as { status?: string } | undefined)?.status === 'running';
    words.push({ runId, attempt, say, sentAt, endedAt: performance.now(), statusCode, isHeld });
    if (statusCode !== null && ![200, 409, 503].includes(statusCode)) {
      refusals.push(`${action} of ${runId}: ${statusCode} ${JSON.stringify(answer?.body)}`);
    }
    return statusCode;
  }

  return {
    post,
    words,
    refusals,
    end: async (about, status, result) => {
      const error = status === 'failed' ? { error: 'as it was asked for' } : {};
      for (let wait = AGAIN_MS; !stopping; wait = Math.min(AGAIN_AT_MOST_MS, wait * 2)) {
        const statusCode = await speak(about, status, { status, result, ...error });
        if (statusCode !== null && statusCode < 500) return;
        await sleep(wait);
      }
    },
    beat: async (about) => {
      const statusCode = await speak(about, 'alive', {});
      return statusCode === null || statusCode === 200 || statusCode >= 500;
    },
    stop: () => {
      stopping = true;
    },
  };
}

interface SubmitOptions {
  api: GraphApi;
  /** Of the receiver. */
  url: string;
  /** Wait between two calls for each run of the first. */
  paceMs: number;
  /** After that nothing more is asked for: on a slow machine there are fewer. */
  until: number;
  /** After that what was asked for and never answered stays unknown. */
  giveUpAt: number;
  say: (line: string) => void;
}

const RESUBMIT_MS = 200;

/** Asks for them, call by call; a call that is not answered is repeated with the same keys until it is. */
export async function submitGraph(batches: readonly Asked[][], options: SubmitOptions): Promise<void> {
  const ids = new Map<string, string>();
  for (const batch of batches) {
    if (performance.now() >= options.until) {
      options.say(`the time was up before ${batch[0]?.ref ?? ''}`);
      return;
    }
    await submit(batch, ids, options);
    options.say(`asked for ${batch.length}: ${batch[0]?.ref ?? ''} …`);
    await sleep(options.paceMs * batch.length);
  }
}

async function submit(batch: readonly Asked[], ids: Map<string, string>, options: SubmitOptions): Promise<void> {
  const { api, url, giveUpAt } = options;
  const own = new Set(batch.map(({ ref }) => ref));
  const items = batch.map((run) => {
    return {
      ...itemOf(run, url),
      dependsOn: run.dependsOn.map((ref) => (own.has(ref) ? ref : (ids.get(ref) ?? ref))),
    };
  });
  setOutcome(batch, 'unknown');
  while (performance.now() < giveUpAt) {
    const answer = await api.post('/runs/batch', { items });
    if (answer?.status === 201 || answer?.status === 200) {
      const accepted = answer.body as { items: { ref: string; id: string }[] };
      for (const { ref, id } of accepted.items) ids.set(ref, id);
      for (const run of batch) run.id = ids.get(run.ref) ?? null;
      setOutcome(batch, 'accepted');
      return;
    }
    if (answer && answer.status !== 503) {
      api.refusals.push(`batch of ${batch[0]?.ref ?? ''}: ${answer.status} ${JSON.stringify(answer.body)}`);
      if (answer.status < 500) {
        setOutcome(batch, 'refused');
        return;
      }
    }
    await sleep(RESUBMIT_MS);
  }
}

function setOutcome(batch: readonly Asked[], outcome: Asked['outcome']): void {
  for (const run of batch) run.outcome = outcome;
}

function itemOf({ ref, kind, onDependencyFailure }: Asked, url: string): object {
  return {
    ref,
    key: ref,
    payload: { ref },
    onDependencyFailure,
    retry: { maxAttempts: 100, minBackoffSeconds: 0.1, maxBackoffSeconds: 1 },
    ...(kind === 'pull'
      ? { target: { type: 'pull', queue: QUEUE } }
      : { target: { type: 'http', url }, timeoutSeconds: 5 }),
    ...(kind === 'callback' ? { completion: 'callback', completionTimeoutSeconds: COMPLETION_TIMEOUT_SECONDS } : {}),
  };
}
