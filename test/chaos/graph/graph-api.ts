import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, call } from '../../support/calls.ts';
import type { Fate, Word } from './checker/graph-history.ts';
import type { Instance } from '../cluster/instance.ts';
import type { Random } from '../random.ts';

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
