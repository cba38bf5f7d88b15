import type { AttemptSettlement } from '../../core/runs/attempts/settle-attempt.ts';
import type { DatabaseClock } from '../../runtime/clock.ts';
import type { Lease } from '../../runtime/instance-lease.ts';
import type { Loop } from '../../runtime/loop/loop.ts';
import type { OwnShortage } from '../../runtime/own-shortage.ts';
import type { Rests } from '../../runtime/loop/rests.ts';
import type { Wake } from '../../runtime/loop/wake.ts';
import type { InstallationWatch } from '../../runtime/installation-watch.ts';
import type { LoopDeps } from '../../postgres/database.ts';
import type { TargetRegistry } from '../../targets/target.ts';
import type { ClaimBuffer } from './claim-buffer.ts';
import type { ClaimRoom } from './claim-room.ts';
import type { ClaimToSend } from '../handoff/ask-target.ts';
import type { HandoffDefinitions } from '../handoff/handoff-definitions.ts';
import type { LaneBook } from './lane.ts';
import type { Lanes } from './lanes.ts';
import type { EndedAttempt } from '../settle-queue.ts';
import type { Settler } from '../settle.ts';

export interface DispatchDeps extends LoopDeps {
  /** `dispatch` claims all runs except messages of notifiers, and makes these ready; `messages` claims these. */
  name: 'dispatch' | 'messages';
  databaseClock: DatabaseClock;
  targets: TargetRegistry;
  definitions: HandoffDefinitions;
  settler: Pick<Settler, 'add'>;
  lease: Lease;
  installation: Pick<InstallationWatch, 'holdsRuns' | 'onChange'>;
  wake: Wake;
  shortage: OwnShortage;
  /** There may be work for workers that pull. */
  wakeWorkers: () => void;
  /** Messages of notifiers have come due. */
  wakeMessages: () => void;
  /** Attempts under way at once: in all, and per lane. */
  concurrency: number;
  concurrencyPerLane: number;
  /** How often to look for work without a hint. */
  pollIntervalMs: number;
  /** Attempts the run and hands the outcome to the settlement. */
  execute: (claim: ClaimToExecute) => Promise<void>;
}

/** A claim that has its definition and a slot. */
export interface ClaimToExecute extends ClaimToSend {
  /** The attempt has ended: its slot is free. The claim is kept until this outcome is written. */
  ended(outcome: AttemptSettlement): EndedAttempt;
}

/** What the steps of the stage work on. */
export interface Dispatch {
  readonly deps: DispatchDeps;
  readonly book: LaneBook;
  readonly room: ClaimRoom;
  readonly buffer: ClaimBuffer;
  readonly lanes: Lanes;
  readonly loop: Loop;
  readonly refused: Rests;
  readonly aborting: AbortController;
  /** Called once no claim is left. */
  readonly onIdle: (() => void)[];
  /** False once it stops. */
  accepting: boolean;
}
