import { type ClientOptions, createCaller } from '../client.ts';
import type { ClaimedRun } from '../generated/types.gen.ts';
import { Problem } from '../problem.ts';
import { Refused, messageOf } from '../receiver/reply.ts';
import { type Claim, createCalls } from './calls.ts';
import { type Leading, type RunHandler, lead } from './lead.ts';
import { createPlaces } from './places.ts';
import { pause, secondsUntilAgain } from './repeat.ts';

const MOST_PER_CLAIM = 100;

export interface WorkerOptions extends ClientOptions {
  /** The same in each call, and no other worker's. Made of random letters unless set. */
  workerId?: string;
  /** So many runs are worked on at once: 1 unless set. */
  concurrency?: number;
  /** So many more are claimed ahead, so that none has to be waited for: 0 unless set. */
  prefetch?: number;
  /** 60 unless set. Heartbeats come at a third of it. */
  leaseSeconds?: number;
  /** How long a claim waits at the daemon for work: 20 unless set. */
  waitSeconds?: number;
  /** How often the log is sent: 1 unless set. */
  logSeconds?: number;
  /** Which errors of the work end the run as failed, for good. Only `Refused` unless set; after all others it is tried again. */
  isRefusal?: (error: unknown) => boolean;
  /** Is told of what went wrong in the work or a call. Writes to stderr unless set. */
  onError?: (error: unknown, runId: string | null) => void;
}

export interface Worker {
  /** Claims no more, releases what has not begun, and resolves when what has begun is done and reported. */
  stop: () => Promise<void>;
  /** Resolves when it has stopped; rejects if the daemon refuses it, for its token for example. */
  ended: Promise<void>;
}

/** Works on the runs of a queue until it is stopped. @throws TypeError on a wrong URL */
export function work(queue: string, handler: RunHandler, options: WorkerOptions): Worker {
  const { concurrency = 1, prefetch = 0, workerId = `worker-${crypto.randomUUID()}` } = options;
  const stopping = new AbortController();
  const leading: Leading = {
    ...{ handler, workerId, leaseSeconds: options.leaseSeconds ?? 60, logSeconds: options.logSeconds ?? 1 },
    calls: createCalls(createCaller(options)),
    isRefusal: options.isRefusal ?? ((error) => error instanceof Refused),
    onError: options.onError ?? writeError,
    slots: createPlaces(concurrency),
    stopping: stopping.signal,
  };
  const ended = claimUntilStopped(queue, concurrency + prefetch, options.waitSeconds ?? 20, leading);
  return {
    ended,
    stop: () => {
      stopping.abort();
      return ended;
    },
  };
}

/** A run that is led here, by its id. */
interface Led {
  lost: AbortController;
  ended: Promise<void>;
}

async function claimUntilStopped(queue: string, most: number, waitSeconds: number, leading: Leading) {
  const { workerId, leaseSeconds, stopping } = leading;
  const held = createPlaces(most);
  const led = new Map<string, Led>();
  let failures = 0;
  try {
    while (await held.take(stopping)) {
      const max = 1 + held.takeRest(MOST_PER_CLAIM - 1);
      const items = await claim(queue, { workerId, max, leaseSeconds, waitSeconds }, { leading, failures });
      failures = items === null ? failures + 1 : 0;
      for (const run of items ?? []) void begin(run, led, leading).finally(() => held.give());
      held.give(max - (items?.length ?? 0));
    }
  } finally {
    await Promise.all([...led.values()].map(({ ended }) => ended));
  }
}

/** Null where it failed; then it has paused. @throws Problem where asking again is of no use */
async function claim(
  queue: string,
  words: Claim,
  { leading, failures }: { leading: Leading; failures: number },
): Promise<ClaimedRun[] | null> {
  const { calls, stopping, onError } = leading;
  try {
    // If this hangs up, the daemon takes back what it has claimed meanwhile.
    return await calls.claim(queue, words, stopping);
  } catch (error) {
    if (stopping.aborted) return null;
    if (error instanceof Problem && !error.mayPass) throw error;
    onError(error, null);
    await pause(secondsUntilAgain(error, failures + 1), stopping);
    return null;
  }
}

/** A run that comes again was lost here: the new attempt begins when the old one has heeded that. */
function begin(run: ClaimedRun, led: Map<string, Led>, leading: Leading): Promise<void> {
  const older = led.get(run.id);
  older?.lost.abort(new Error('it was claimed again'));
  const lost = new AbortController();
  const ended = Promise.resolve(older?.ended)
    .then(() => lead(run, lost, leading))
    .catch((error: unknown) => leading.onError(error, run.id))
    .finally(() => {
      if (led.get(run.id)?.lost === lost) led.delete(run.id);
    });
  led.set(run.id, { lost, ended });
  return ended;
}

function writeError(error: unknown, runId: string | null): void {
  // oxlint-disable-next-line no-console -- a library has nowhere else to say it
  console.error(`firelock-client: run ${runId ?? '-'}: ${messageOf(error)}`);
}
