import { hash } from 'node:crypto';
import type { Connection } from '../core/connections/connection.ts';
import type { Instant } from '../core/instant.ts';
import type { Accepted, AttemptError, Outcome } from '../core/runs/attempts/outcome.ts';
import type { Parent } from '../core/runs/parent.ts';
import type { Dependency, RunTrigger } from '../core/runs/run.ts';
import type { SuccessBounds } from '../core/schedules/expect.ts';
import type { Delivery, HandoffTarget } from '../core/schedules/schedule.ts';

/** One attempt of one run, as a target sees it. */
export interface Attempt {
  runId: string;
  runName: string | null;
  scheduleId: string | null;
  scheduledFor: Instant;
  trigger: RunTrigger;
  attempt: number;
  /**
   * The id of the attempt's span; absent: the kind makes one up. A call beside the attempt, such as a lookup, is
   * another span.
   */
  spanId?: string;
  /** The client's JSON text, or null. */
  payload: string | null;
  timeoutSeconds: number;
  /** What the target names as its connection, as it is now; null: it names none. */
  connection: Connection<string> | null;
  /** At most once: over a connection over which nothing was sent before, and never sent twice by the kind itself. */
  delivery: Delivery;
  recovery: { recoveries: number; recoveredAt: Instant } | null;
  /** How much of its time `prepare` has taken, in whole milliseconds; absent: nothing. */
  spentMs?: number;
  /** The outcomes of the runs that it waited for. */
  dependencies: readonly Dependency[];
  /** The end, or the late schedule, that it follows; null: none, or it is no longer kept. */
  parent: Parent | null;
  /** What must hold of its result; absent or null: nothing. */
  expectedResult?: SuccessBounds['result'];
  /**
   * Called at the last moment before the first byte is written, as often as needed; false: the lease has run out
   * meanwhile. Then nothing is sent, and the outcome is `transient` with `senderStopped`.
   */
  mayStart: () => boolean;
}

/** Why the target may not know of the cancellation; null: it knows. */
export type CancelAnswer = AttemptError | null;

/** Whether an earlier attempt of unknown outcome arrived. */
export type LookupAnswer =
  | {
      kind: 'arrived';
      statusCode: number;
      body: string;
      executionId: string | null;
      /** What it says about the work itself; absent: nothing. */
      reported?: NonNullable<Accepted['reported']>;
      resultFault?: string | null;
    }
  | { kind: 'notArrived' }
  /** It is still unknown. */
  | { kind: 'unclear'; error: AttemptError };

/**
 * A kind of target. `deliver` answers the outcome of the attempt and never throws; it ends at the latest
 * `timeoutSeconds` after it began. `signal` aborts it because the daemon is stopping: the outcome is then `unknown`
 * with `senderStopped`, or `transient` if provably nothing was sent. A method that needs no secret value takes the
 * target as it is stored.
 */
export interface TargetKind<T extends HandoffTarget<string> = HandoffTarget<string>> {
  readonly type: T['type'];
  /** Runs of one lane share a cap, so that a slow target delays only itself. */
  laneOf(target: HandoffTarget): string;
  /**
   * Gets what the attempt needs of others before it can be sent, such as an access token; absent: it needs nothing. Called before it is
   * durable that the handoff begins. Never throws, and ends as `deliver` does; null: it may be sent.
   */
  prepare?(attempt: Attempt, signal: AbortSignal): Promise<Outcome | null>;
  deliver(target: T, attempt: Attempt, signal: AbortSignal): Promise<Outcome>;
  /** Whether `lookup` can be called for this target. */
  hasLookup(target: HandoffTarget): boolean;
  /** Asks what happened to the run's earlier attempt; never throws, and ends as `deliver` does. */
  lookup(target: T, attempt: Attempt, signal: AbortSignal): Promise<LookupAnswer>;
  /** Whether `cancel` can be called for this target. */
  hasCancel(target: HandoffTarget): boolean;
  /** Calls the target once to say that the run is cancelled; never throws, and ends as `deliver` does. */
  cancel(target: T, attempt: Attempt, signal: AbortSignal): Promise<CancelAnswer>;
  /** Waits for the work under way and closes kept connections. */
  close(): Promise<void>;
}

export interface TargetRegistry {
  /** The types that this version can hand off; it does not claim runs of other types. */
  readonly types: readonly string[];
  kindOf(target: HandoffTarget): TargetKind | undefined;
  /**
   * `type`, a space, and the name under which runs share slots: `http https://api.example.com`; for a pull target, its
   * queue. At most 200 bytes: a longer name becomes its beginning and a hash.
   */
  laneOf(target: HandoffTarget): string;
  /** Whether this version knows the kind at the beginning of a lane's name; other lanes are left to a version that does. */
  canSend(lane: string): boolean;
  /** Closes every kind: waits for the work under way. */
  close(): Promise<void>;
}

export function createTargetRegistry(kinds: readonly TargetKind[]): TargetRegistry {
  const byType = new Map<string, TargetKind>(kinds.map((kind) => [kind.type, kind]));
  const laneWithin = (target: HandoffTarget): string =>
    target.type === 'pull' ? target.queue : (byType.get(target.type)?.laneOf(target) ?? '');
  const beginnings = kinds.map(({ type }) => `${type} `);
  return {
    types: [...byType.keys()],
    kindOf: (target) => byType.get(target.type),
    laneOf: (target) => boundedLane(`${target.type} ${laneWithin(target)}`),
    canSend: (lane) => beginnings.some((beginning) => lane.startsWith(beginning)),
    close: async () => {
      await Promise.all(kinds.map((kind) => kind.close()));
    },
  };
}

/** A lane's name is part of index rows, and PostgreSQL takes none of more than a third of a page. */
const MAX_BYTES = 200;

/** A short lane as it is. A longer one becomes its beginning, for readers, and its hash, which keeps it apart from others. */
function boundedLane(lane: string): string {
  if (Buffer.byteLength(lane) <= MAX_BYTES) return lane;
  const end = `#${hash('sha256', lane)}`;
  const { read } = new TextEncoder().encodeInto(lane, new Uint8Array(MAX_BYTES - end.length));
  return lane.slice(0, read) + end;
}
