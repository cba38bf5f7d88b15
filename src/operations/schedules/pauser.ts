/**
 * Guarantees: what an effect says about pausing a schedule is done. A schedule whose target answered 410 Gone is paused, unless it now has
 *   another target, is paused already, or is another schedule of the same id. A schedule is paused once `pauseAfterFailures` of its runs in
 *   a row did not succeed, since it was enabled and since its last success.
 * Transaction: that of an edit, one per schedule, under its row lock; then one statement that deletes the effect.
 * If the process dies here: the effect is still there; any instance finds it, and what is paused already stays as it is.
 */
import { isDeepStrictEqual } from 'node:util';
import { BY_FIRELOCK, pausedBecause } from '../../core/schedules/definition-change.ts';
import type { HandoffTarget, Schedule } from '../../core/schedules/schedule.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { openTarget } from '../../core/secrets/target-secrets.ts';
import type { Clock } from '../../runtime/clock.ts';
import { type Turning, createLoop, turningOf } from '../../runtime/loop/loop.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { isUnavailable } from '../../postgres/errors.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type Effect, deleteEffects, putOffEffect } from '../../store/effects/effect-rows.ts';
import { type VersionKey, versionKey } from '../../store/schedules/load-handoffs.ts';
import { lockSchedules } from '../../store/schedules/search/find-schedules.ts';
import { countFailuresInARow } from '../../store/schedules/watches/outcome-watches.ts';
import { type ScheduleChangeDeps, changeFoundSchedules, changeSchedules } from './schedule-changes.ts';
import type { ScheduleChange } from './schedule-writes.ts';

interface PauserDeps extends ScheduleChangeDeps {
  clock: Clock;
  /** What versions say, with their secret values decrypted. */
  definitions: {
    read(keys: readonly VersionKey[]): Promise<ReadonlyMap<string, { target: HandoffTarget<string> }>>;
  };
  secrets: KeyRing;
}

/** A loop of its own: a schedule whose row is locked for long holds up no other effect. */
export interface Pauser extends Turning {
  add(effects: readonly Effect[]): void;
}

const IDLE_MS = 60_000;
const PUT_OFF_SECONDS = 60;

export function createPauser(deps: PauserDeps): Pauser {
  /** By kind and version, since the runs of a version all say the same. */
  const waiting = new Map<string, Effect[]>();
  const body = () => pauseNext(deps, waiting);
  const loop = createLoop({ name: 'pause', clock: deps.clock, body, events: deps.events });
  return {
    ...turningOf(loop),
    add: (effects) => {
      for (const effect of effects) add(waiting, effect);
      loop.wake();
    },
  };
}

function add(waiting: Map<string, Effect[]>, effect: Effect): void {
  const key = `${effect.kind} ${versionKey(effect)}`;
  const others = waiting.get(key) ?? [];
  if (!others.some(({ id }) => id === effect.id)) waiting.set(key, [...others, effect]);
}

async function pauseNext(deps: PauserDeps, waiting: Map<string, Effect[]>): Promise<number> {
  const [next] = waiting;
  if (next === undefined) return IDLE_MS;
  const [key, effects] = next;
  waiting.delete(key);
  const ids = effects.map(({ id }) => id);
  try {
    const [first, last] = [effects[0], effects.at(-1)];
    if (first?.kind === 'gone') await pauseGone(deps, first);
    else if (last) await pauseFailing(deps, last);
    await deps.database.run((db) => deleteEffects(db, ids));
  } catch (error) {
    // Behind the others, until the database is back.
    if (isUnavailable(error)) for (const effect of effects) add(waiting, effect);
    else for (const id of ids) await putOff(deps, id, error);
    throw error;
  }
  return waiting.size > 0 ? 0 : IDLE_MS;
}

async function putOff({ database }: PauserDeps, id: number, error: unknown): Promise<void> {
  const why = { error: reasonOf(error), seconds: PUT_OFF_SECONDS };
  await database.run((db) => putOffEffect(db, id, why)).catch(() => undefined);
}

async function pauseGone(deps: PauserDeps, gone: Effect): Promise<void> {
  const { runId, scheduleId } = gone;
  const handoff = (await deps.definitions.read([gone])).get(versionKey(gone));
  // Its version has gone with old history, or cannot be read: what it pointed at is not known any more.
  if (!handoff || scheduleId === null) return;
  const reason = `the target answered 410 Gone to run ${runId}`;
  if (await pauseIfTargetIs(deps, { ...gone, scheduleId }, handoff.target, reason))
    deps.events.emit({ type: 'schedulePaused', scheduleId, reason });
}

/** False: it is another schedule by now, or paused, or has another target. */
async function pauseIfTargetIs(
  deps: PauserDeps,
  { scheduleId, scheduleUid }: { scheduleId: string; scheduleUid: string },
  target: HandoffTarget<string>,
  reason: string,
): Promise<boolean> {
  try {
    const [changed] = await changeSchedules(deps, [
      {
        id: scheduleId,
        by: BY_FIRELOCK,
        scope: null,
        decide: (current) => {
          if (current?.uid !== scheduleUid || !isThis(deps.secrets, current, target))
            throw new NothingToPause();
          return current.definition.enabled ? pausedBecause(current.definition, reason) : current.definition;
        },
      },
    ]);
    return changed?.change === 'updated';
  } catch (error) {
    if (error instanceof NothingToPause) return false;
    throw error;
  }
}

/** The same secret values may be encrypted differently by now. */
function isThis(secrets: KeyRing, { uid, definition }: Schedule, target: HandoffTarget<string>): boolean {
  try {
    return isDeepStrictEqual(openTarget(secrets, uid, definition.target), target);
  } catch {
    return false;
  }
}

/** Thrown under the lock, so that nothing is written. */
class NothingToPause extends Error {
  override readonly name = 'NothingToPause';
}

async function pauseFailing(deps: PauserDeps, failing: Effect): Promise<void> {
  const { scheduleId, scheduleUid, runId } = failing;
  if (scheduleId === null) return;
  let reason = '';
  const find = async (tx: Transaction): Promise<ScheduleChange[]> => {
    const found = (await lockSchedules(tx, [scheduleId])).get(scheduleId);
    if (found?.uid !== scheduleUid) return [];
    // A statement of its own: the snapshot of the locking statement is older.
    const count = await countFailuresInARow(tx, scheduleUid);
    if (!count || count.failures < count.atMost) return [];
    reason = `${runsInARow(count.atMost)}; the last of them is ${runId}`;
    return [
      {
        id: scheduleId,
        by: BY_FIRELOCK,
        scope: null,
        decide: (current) => pausedBecause((current ?? found).definition, reason),
      },
    ];
  };
  const { changed } = await changeFoundSchedules(deps, find);
  if (changed.length > 0) deps.events.emit({ type: 'schedulePaused', scheduleId, reason });
}

function runsInARow(count: number): string {
  return count === 1 ? 'a run did not succeed' : `${count} runs in a row did not succeed`;
}
