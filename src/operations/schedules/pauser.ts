/**
 * Guarantees: what an effect says about pausing a schedule is done. A schedule whose target answered 410 Gone is paused, unless it now has
 *   another target, is paused already, or is another schedule of the same id. A schedule is paused once `pauseAfterFailures` of its runs in
 *   a row did not succeed, since it was enabled and since its last success.
 * Transaction: that of an edit, one for up to a hundred schedules, under their row locks; schedules that others have locked are left for
 *   the next pass. Then one statement that deletes the effects.
 * If the process dies here: the effect is still there; any instance finds it, and what is paused already stays as it is.
 */
import { isDeepStrictEqual } from 'node:util';
import { BY_FIRELOCK, pausedBecause } from '../../core/time/definition-change.ts';
import type { Definition, HandoffTarget, Schedule } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { openTarget } from '../../core/schedules/target-secrets.ts';
import type { Clock } from '../../runtime/clock.ts';
import { createLoop, type Turning, turningOf } from '../../runtime/loop/loop.ts';
import { inHalves } from '../../runtime/loop/batch.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { batchFaultOf, isUnavailable } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { deleteEffects, type Effect, putOffEffect } from '../../store/effects/effect-rows.ts';
import { type VersionKey, versionKey } from '../../store/schedules/schedule-versions.ts';
import { lockFreeSchedules, lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { type FailureCount, countFailuresInARow } from '../../store/schedules/watches.ts';
import { changeFoundSchedules, type ScheduleChangeDeps } from './schedule-changes.ts';
import type { ChangedSchedule, ScheduleChange } from './schedule-writes.ts';

interface PauserDeps extends ScheduleChangeDeps {
  clock: Clock;
  /** What versions say, with their secret values decrypted. */
  definitions: {
    read(keys: readonly VersionKey[]): Promise<ReadonlyMap<string, Handed>>;
  };
  secrets: KeyRing;
}

interface Handed {
  target: HandoffTarget<string>;
}

/** A loop of its own: a schedule whose row is locked for long holds up no other effect. */
export interface Pauser extends Turning {
  add(effects: readonly Effect[]): void;
}

const IDLE_MS = 60_000;
const PUT_OFF_SECONDS = 60;
/** Schedules of one transaction. */
const BATCH = 100;
/** For rows that another transaction has locked. */
const LOCKED_MS = 200;

export function createPauser(deps: PauserDeps): Pauser {
  /** By schedule. */
  const waiting = new Map<string, Effect[]>();
  const body = () => pauseNext(deps, waiting);
  const loop = createLoop({ name: 'pause', clock: deps.clock, body, events: deps.events });
  return {
    ...turningOf(loop),
    add: (effects) => {
      add(waiting, effects);
      loop.wake();
    },
  };
}

function add(waiting: Map<string, Effect[]>, effects: readonly Effect[]): void {
  for (const effect of effects) {
    const others = waiting.get(effect.scheduleUid);
    if (others === undefined) waiting.set(effect.scheduleUid, [effect]);
    else if (!others.some(({ id }) => id === effect.id)) others.push(effect);
  }
}

/** What is said about one schedule. */
type Said = readonly [uid: string, effects: readonly Effect[]];

async function pauseNext(deps: PauserDeps, waiting: Map<string, Effect[]>): Promise<number> {
  const batch: Said[] = [...waiting.entries().take(BATCH)];
  const left = new Map(batch);
  for (const [uid] of batch) waiting.delete(uid);
  const failures: unknown[] = [];
  try {
    await inHalves(batch, {
      work: async (some) => {
        const locked = new Set(await pauseEach(deps, some));
        for (const [uid] of some) if (!locked.has(uid)) left.delete(uid);
      },
      faultOf: (error) => batchFaultOf(error) ?? (isUnavailable(error) ? null : 'refused'),
      setAside: async ([uid, effects], error) => {
        failures.push(error);
        left.delete(uid);
        for (const { id } of effects) await putOff(deps, id, error);
      },
    });
  } finally {
    // Behind the others: those that are locked, and all until the database is back.
    for (const effects of left.values()) add(waiting, effects);
  }
  if (failures.length > 0) throw failures[0];
  if (waiting.size === 0) return IDLE_MS;
  return left.size === batch.length ? LOCKED_MS : 0;
}

async function putOff({ database }: PauserDeps, id: number, error: unknown): Promise<void> {
  const why = { error: reasonOf(error), seconds: PUT_OFF_SECONDS };
  await database.run((db) => putOffEffect(db, id, why)).catch(() => undefined);
}

/** Answers the uids of the schedules that another transaction has locked: of the others, what was said is done. */
async function pauseEach(deps: PauserDeps, batch: readonly Said[]): Promise<string[]> {
  const gone = batch.flatMap(([, effects]) => effects.filter(({ kind }) => kind === 'gone'));
  const versions = gone.length === 0 ? new Map<string, Handed>() : await deps.definitions.read(gone);
  let locked: string[] = [];
  const reasons = new Map<string, string>();
  const find = async (tx: Transaction): Promise<ScheduleChange[]> => {
    reasons.clear();
    const rows = await lockFreeSchedules(
      tx,
      batch.map(([uid]) => uid),
    );
    ({ locked } = rows);
    const free = new Map(batch.filter(([uid]) => rows.free.includes(uid)));
    const named = [...free.values()].flatMap((effects) => effects[0]?.scheduleId ?? []);
    const found = await lockSchedules(tx, named);
    // A statement of its own: the snapshot of the locking statement is older.
    const counts = await countFailuresInARow(tx, [...free.keys()]);
    return [...found.values()].flatMap((schedule) => {
      const effects = free.get(schedule.uid) ?? [];
      const reason = reasonGone(deps, schedule, effects, versions) ?? reasonFailing(effects, counts.get(schedule.uid));
      if (reason === null) return [];
      reasons.set(schedule.id, reason);
      const decide = (current: Schedule | null) => pausedUnlessPaused(current ?? schedule, reason);
      return [{ id: schedule.id, by: BY_FIRELOCK, scope: null, decide }];
    });
  };
  const { changed } = await changeFoundSchedules(deps, find);
  emitPaused(deps, changed, reasons);
  const done = batch.filter(([uid]) => !locked.includes(uid)).flatMap(([, effects]) => effects);
  await deps.database.run((db) =>
    deleteEffects(
      db,
      done.map(({ id }) => id),
    ),
  );
  return locked;
}

function emitPaused(
  { events }: PauserDeps,
  changed: readonly ChangedSchedule[],
  reasons: ReadonlyMap<string, string>,
): void {
  for (const { change, schedule } of changed) {
    const reason = reasons.get(schedule.id);
    if (change === 'updated' && reason !== undefined)
      events.emit({ type: 'schedulePaused', scheduleId: schedule.id, reason });
  }
}

function pausedUnlessPaused({ definition }: Schedule, reason: string): Definition {
  return definition.enabled ? pausedBecause(definition, reason) : definition;
}

/**
 * Null: no run of it was answered 410 by the target that it has now. A version that has gone with old history, or cannot be read, pointed
 * at what is not known any more.
 */
function reasonGone(
  { secrets }: PauserDeps,
  schedule: Schedule,
  effects: readonly Effect[],
  versions: ReadonlyMap<string, Handed>,
): string | null {
  const gone = effects.find((effect) => {
    const handoff = effect.kind === 'gone' ? versions.get(versionKey(effect)) : undefined;
    return handoff !== undefined && isThis(secrets, schedule, handoff.target);
  });
  return gone === undefined ? null : `the target answered 410 Gone to run ${gone.runId}`;
}

function reasonFailing(effects: readonly Effect[], count: FailureCount | undefined): string | null {
  const last = effects.findLast(({ kind }) => kind === 'failing');
  if (last === undefined || count === undefined || count.failures < count.atMost) return null;
  return `${runsInARow(count.atMost)}; the last of them is ${last.runId}`;
}

/** The same secret values may be encrypted differently by now. */
function isThis(secrets: KeyRing, { uid, definition }: Schedule, target: HandoffTarget<string>): boolean {
  try {
    return isDeepStrictEqual(openTarget(secrets, uid, definition.target), target);
  } catch {
    return false;
  }
}

function runsInARow(count: number): string {
  return count === 1 ? 'a run did not succeed' : `${count} runs in a row did not succeed`;
}
