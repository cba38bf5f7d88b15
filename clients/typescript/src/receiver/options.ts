import type { Firelock } from '../generated/operations.gen.ts';
import type { HandedRun } from './handed-run.ts';
import type { RunStore } from './store.ts';

export interface ReceiverOptions {
  /** Those of the target; null: nothing is verified. Then everybody who reaches the receiver can start work. */
  secrets: string | readonly string[] | null;
  work: Work;
  /** What it remembers of runs: this process's memory unless set, which a restart empties. */
  store?: RunStore;
  /** Answers at once, and reports the end of the work by `/complete`: for schedules with `completion: "callback"`. */
  callback?: Callback;
  /** How far the time of a signature may be from now: 300 s unless set. */
  toleranceSeconds?: number;
  /** In milliseconds since 1970. */
  now?: () => number;
  /** A larger body is answered 413. 16 MiB unless set. */
  maxBodyBytes?: number;
  /** Is told of what went wrong in the work, the store or a report. Writes to stderr unless set. */
  onError?: (error: unknown, runId: string | null) => void;
}

/** Does what the run is about. What it returns goes to firelock as JSON. */
export type Work = (run: HandedRun, job: Job) => unknown;

export interface Job {
  /** Aborted when the result is not wanted any more. Only with `callback`: before an answer firelock cannot say so. */
  signal: AbortSignal;
  /** How much is done, from 0 to 1; the next heartbeat tells it. Only with `callback`. */
  progress: (done: number) => void;
}

export interface Callback {
  /** A client with a token of role worker. */
  firelock: Pick<Firelock, 'completeRun' | 'heartbeatRun'>;
  /** A third of the schedule's `completionTimeoutSeconds`, so that two may be lost. 20 unless set. */
  heartbeatSeconds?: number;
}

/** With what was left out filled in. */
export type Deps = Required<Pick<ReceiverOptions, 'store' | 'work' | 'onError'>>;
