/**
 * The fire protocol, as it runs in one instance:
 *
 *   tick ──► fire-lock ──► plan ──► record intent ──► dispatch ──► target ──► settle ──► effects
 *    1          2           3           4                5           6          7          8
 *
 * 1 wakes at the next due moment; 2 takes a batch of due schedules; 3 says what each of them fires; 4 makes that durable
 * and moves the cursors on, in one commit; 5 claims and sends within the lanes' shares; 6 is the target's answer as a
 * value; 7 writes it down, together with its effects; 8 does the effects. Each file says what it guarantees and what is true if the
 * process dies in it. `fireDue` and `executeRun` below are the story in code; the rest puts the stages together.
 */
import type { ScopeShares } from '../core/access/scope.ts';
import { laneInScope } from '../core/runs/run-lane.ts';
import type { KeyRing } from '../core/secrets/key-ring.ts';
import type { ConfirmedCommits } from '../runtime/confirmed-commits.ts';
import type { DatabaseClock } from '../runtime/clock.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { createOwnShortage } from '../runtime/own-shortage.ts';
import type { InstallationWatch } from '../runtime/installation-watch.ts';
import type { Wake } from '../runtime/loop/wake.ts';
import type { Effect } from '../store/effects/effect-rows.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { releaseFireLocksIfMine } from '../store/schedules/fire-locks.ts';
import type { LockedSchedule } from '../store/schedules/locked-schedule.ts';
import type { TargetRegistry } from '../targets/target.ts';
import { createSecretFiles } from '../targets/login/secret-files.ts';
import { createAdmission } from './admission.ts';
import { createBacklogs } from './backlogs.ts';
import { TargetCanceller } from './cancel-target.ts';
import type { ClaimToExecute } from './dispatch/dispatch-state.ts';
import { createDispatcher } from './dispatch/dispatch.ts';
import { MESSAGE_POLL_MS, MESSAGE_SLOTS, NEVER_HELD, joinDispatchers } from './dispatch/dispatchers.ts';
import { createEffects } from './effects.ts';
import { createTargetFiller } from './handoff/file-values.ts';
import { createConnectionReader } from './handoff/connection-reader.ts';
import { createDependencyReader } from './handoff/dependency-outcomes.ts';
import { type HandoffDeps, attemptHandoff, createHandoffStarter } from './handoff/handoff.ts';
import { createHandoffDefinitions } from './handoff/handoff-definitions.ts';
import { createReadAhead } from './handoff/read-ahead.ts';
import { createCalendarReader } from './plan-inputs.ts';
import { Planner } from './plan.ts';
import { type FiredRound, type FireLockDeps, createTick, FIRE_LOCK_BATCH, PlanTurns, takeFireLocks } from './tick.ts';
import { type RecordIntentDeps, recordIntents } from './record-intent.ts';
import { type Settler, createSettler } from './settle.ts';

interface PipelineDeps extends LoopDeps {
  databaseClock: DatabaseClock;
  commits: ConfirmedCommits;
  targets: TargetRegistry;
  /** Decrypts what targets are sent. */
  secrets: KeyRing;
  /** Where files of connections are; null: nowhere. */
  secretsDir: string | null;
  lease: Lease;
  installation: InstallationWatch;
  tickIntervalMs: number;
  lockTtlSeconds: number;
  /** Attempts under way at once: in all, and per lane. */
  concurrency: number;
  concurrencyPerLane: number;
  /** Which scopes have lanes of their own, and take turns. */
  scopeShares: ScopeShares;
  /** How often a target is asked about an attempt that may have arrived. */
  maxRecoveries: number;
  /** Nothing older is planned. */
  retentionDays: number;
  /** Where the dashboard is; null: messages of notifiers have no links. */
  publicUrl: string | null;
  /** There may be work for workers that pull. */
  wakeWorkers: () => void;
  /** Messages of notifiers were recorded. */
  wakeAlerts: () => void;
  /** Pauses schedules whose target is gone, or whose runs fail, and deletes these effects. */
  pauseSchedules: (effects: readonly Effect[]) => void;
}

export type Pipeline = ReturnType<typeof createPipeline>;

/** From schedules that are due to recorded runs: stages 2 to 4 of one batch. The tick calls it. */
async function fireDue(deps: FireDueDeps): Promise<FiredRound> {
  const { planner } = deps;
  const due = await takeFireLocks(deps, planner.walking());
  if (due.inMaintenance) planner.giveUp();
  const planned = await planner.round(inLanesOf(deps.scopeShares, due.locked), due.now);
  await recordIntents(deps, planned, due.now);
  // `nextDueAt` was read before these schedules moved on: their new next fires belong to it.
  const movedTo = planned.planned.flatMap(({ plan }) => plan.nextFireAt ?? []);
  return {
    locked: due.locked.length,
    isMore: due.isFull || planner.walking().length > 0,
    nextDueAt: Math.min(due.nextDueAt ?? Infinity, ...movedTo),
  };
}

/** The lanes in which their runs are recorded. */
function inLanesOf(shares: ScopeShares, locked: readonly LockedSchedule[]): readonly LockedSchedule[] {
  if (shares.length === 0) return locked;
  return locked.map((one) => ({ ...one, lane: laneInScope(shares, one.lane, one.id) }));
}

interface FireDueDeps extends FireLockDeps, RecordIntentDeps {
  planner: Planner;
}

/** From a claimed run to its outcome: stages 6 and 7. The dispatcher calls it once the run has a slot. */
async function executeRun(deps: ExecuteRunDeps, claim: ClaimToExecute): Promise<void> {
  deps.settler.add(claim.ended(await attemptHandoff(deps, claim)));
}

interface ExecuteRunDeps extends HandoffDeps {
  settler: Settler;
}

// oxlint-disable-next-line max-lines-per-function -- puts the parts together
export function createPipeline(given: PipelineDeps) {
  const { database, lease } = given;
  const wake: Wake = {
    effects: () => {
      effects.wake();
      alertEffects.wake();
      backlogs.wake();
    },
    dispatch: () => dispatchers.wake(),
    workers: () => given.wakeWorkers(),
    admission: () => admission.wake(),
    alerts: () => given.wakeAlerts(),
  };
  const deps = { ...given, wake, shortage: createOwnShortage(given.events, given.clock) };
  const definitions = createHandoffDefinitions(database, given.secrets);
  const ofFiles = { ...deps, files: createSecretFiles(given.secretsDir) };
  const readConnection = createConnectionReader(ofFiles);
  const canceller = new TargetCanceller({ ...deps, definitions, readConnection });
  const { effects, alertEffects, begunEffects } = createEffects({
    ...deps,
    cancelTargets: (cancelled) => canceller.add(cancelled),
    offer: (runs) => dispatcher.offer(runs),
  });
  const backlogs = createBacklogs(deps);
  const admission = createAdmission(deps);
  const settler = createSettler(deps);
  const executing: ExecuteRunDeps = {
    ...deps,
    settler,
    startHandoff: createHandoffStarter(deps),
    readDependencies: createDependencyReader(database),
    readConnection,
    fillTarget: createTargetFiller(ofFiles),
  };
  const dispatching = {
    ...{ ...deps, settler, definitions, pollIntervalMs: deps.tickIntervalMs },
    wakeMessages: () => messageDispatcher.wake(),
    execute: (claim: ClaimToExecute) => executeRun(executing, claim),
  };
  const dispatcher = createDispatcher({ ...dispatching, name: 'dispatch' });
  const ofMessages = { ...MESSAGE_SLOTS, installation: NEVER_HELD, pollIntervalMs: MESSAGE_POLL_MS };
  const messageDispatcher = createDispatcher({ ...dispatching, ...ofMessages, name: 'messages' });
  const dispatchers = joinDispatchers([dispatcher, messageDispatcher]);
  const planner = new Planner({ ...deps, readCalendars: createCalendarReader(database) });
  const planTurns = new PlanTurns(deps.scopeShares, FIRE_LOCK_BATCH);
  const firing: FireDueDeps = { ...deps, planner, planTurns, dispatcher };
  const tick = createTick({ ...deps, fireDue: () => fireDue(firing) });
  deps.installation.onChange(() => tick.wake());
  return {
    tick,
    admission,
    readAhead: createReadAhead({ ...deps, definitions }),
    dispatcher,
    messageDispatcher,
    /** Both of them, for what is asked of all claims of this instance. */
    dispatchers,
    settler,
    effects,
    alertEffects,
    begunEffects,
    backlogs,
    canceller,
    definitions,
    /** Wakes the stages of this instance. */
    wake,
    /** Gives up the fire-locks of rounds that did not finish. */
    releaseFireLocks: () => database.run((db) => releaseFireLocksIfMine(db, lease.instanceId)),
  };
}
