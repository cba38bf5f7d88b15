/**
 * Guarantees: what follows from the end of a run is done once, soon after, by any instance. An effect that fails holds up no other; nor
 *   do those about alerts, or those that are done in parts: each of these has a line of its own.
 * Transaction: one for a batch of effects, which deletes them with what it does, or says how far it did them: one transaction sees to a
 *   bounded number of followers and dependents. A batch that the database refuses is halved, and the one at fault is put off.
 * If the process dies here: the effects are still there; any instance finds them.
 */
import type { ScopeShares } from '../core/access/scope.ts';
import { ALERT_OF_BOUND } from '../core/alerts/alert.ts';
import { BOUNDS } from '../core/schedules/expect.ts';
import { inHalvesOnceFailed } from '../runtime/loop/batch.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { restAfter } from '../runtime/loop/slices.ts';
import { reasonOf } from '../runtime/reason.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { type AppliedEffects, applyEffects } from '../store/effects/apply-effects.ts';
import { splitByFollower } from '../store/effects/followers.ts';
import {
  type Effect,
  type EffectLine,
  lockEffects,
  lockEffectsAgain,
  putOffEffect,
} from '../store/effects/effect-rows.ts';
import { batchFaultOf } from '../postgres/errors.ts';
import { emitAlerts } from '../store/alerts/apply-causes.ts';
import { emitJudged } from '../store/runs/overlaps.ts';

interface EffectsDeps extends LoopDeps {
  wake: Wake;
  /** In whose lanes runs of followers wait. */
  scopeShares?: ScopeShares;
  /** Where the dashboard is; null: messages have no links. */
  publicUrl: string | null;
  /** Followers that are ready to be sent. */
  offer: (runs: AppliedEffects['toSend']) => void;
  /** Reports to targets that their runs were cancelled. */
  cancelTargets: (effects: readonly Effect[]) => void;
  /** Pauses schedules whose target is gone, or whose runs fail, and deletes the effect. */
  pauseSchedules: (effects: readonly Effect[]) => void;
}

const MAX_BATCH = 200;
/** Of effects that were begun: the fewer, the larger the part of each. */
const MAX_BEGUN = 20;
/** Other instances wake their own loop; this finds what a dead one has left. */
const IDLE_MS = 2_000;
/**
 * The wait before rows that other transactions have locked are tried again. It doubles each time, so that other effects get their turn,
 * however many wait for a row that stays locked.
 */
const MIN_REST_MS = 50;
const MAX_REST_MS = 2_000;
const MIN_PUT_OFF_SECONDS = 1;
const MAX_PUT_OFF_SECONDS = 300;

interface State extends EffectsDeps {
  /** Effects that must wait for now: passed over, or under way elsewhere in this process. */
  rests: Map<number, Rest>;
  wakeBegun: () => void;
}

interface Rest {
  /** Monotonic. */
  until: number;
  ms: number;
}

/**
 * The first two are to be woken when some were written. A loop of their own goes on with those that are done in parts: no new effect waits
 * for a part, and between two parts is time for others.
 */
export function createEffects(deps: EffectsDeps): Record<'effects' | 'alertEffects' | 'begunEffects', Loop> {
  const state: State = {
    ...deps,
    rests: new Map(),
    wakeBegun: () => begunEffects.wake(),
  };
  const { clock, events } = deps;
  const effects = createLoop({ name: 'effects', clock, events, body: () => pass(state, 'new') });
  const alertEffects = createLoop({
    name: 'alert-effects',
    clock,
    events,
    body: () => pass(state, 'alerts'),
  });
  const begunEffects = createLoop({
    ...{ name: 'begun-effects', clock, events },
    body: () => pass(state, 'begun'),
    // They are one user's volume.
    minMs: (tookMs) => tookMs + restAfter(tookMs),
  });
  return { effects, alertEffects, begunEffects };
}

async function pass(state: State, which: EffectLine): Promise<number> {
  const { clock, rests } = state;
  const now = clock.monotonic();
  // A rest is kept for a while after its end: an effect that is passed over again meanwhile rests for longer.
  for (const [id, { until }] of rests) if (until + MAX_REST_MS <= now) rests.delete(id);
  const isMore = await applyNext(state, which, now);
  if (isMore) return 0;
  let next = clock.monotonic() + IDLE_MS;
  for (const { until } of rests.values()) if (until > now) next = Math.min(next, until);
  return Math.max(0, next - clock.monotonic());
}

/** Answers whether there may be more that can be done at once. */
async function applyNext(state: State, which: EffectLine, now: number): Promise<boolean> {
  const besides = [...state.rests].filter(([, { until }]) => until > now).map(([id]) => id);
  let batch: Effect[] = [];
  const limit = which === 'begun' ? MAX_BEGUN : MAX_BATCH;
  const isMore = () => batch.length >= MAX_BATCH;
  try {
    const applied = await state.database.transaction(async (tx) => {
      batch = await lockEffects(tx, { which, limit, besides });
      return batch.length === 0 ? null : applyEffects(tx, batch, state);
    });
    if (!applied) return isMore();
    afterCommit(state, applied);
    if (applied.begun.length > 0) state.wakeBegun();
    return isMore() || applied.later.length > 0 || (which === 'begun' && applied.begun.length > 0);
  } catch (error) {
    if (batchFaultOf(error) === null) throw error;
    await applyApart(state, batch, error);
    return isMore();
  }
}

/** An effect that the database refuses, or that is too much work, must not delay the others. */
async function applyApart(state: State, batch: readonly Effect[], error: unknown): Promise<void> {
  await inHalvesOnceFailed(batch, error, {
    work: async (part) => {
      const applied = await state.database.transaction(async (tx) =>
        applyEffects(tx, await lockEffectsAgain(tx, part.map(idOf)), state),
      );
      afterCommit(state, applied);
    },
    faultOf: batchFaultOf,
    setAside: (effect, fault) => putOff(state, effect, fault),
  });
}

async function putOff({ database, events, wake }: State, effect: Effect, error: unknown): Promise<void> {
  if (effect.kind === 'followers' && effect.followerUid === null) {
    // Only one of them may be at fault: each is tried by itself, in the next pass.
    await database.transaction((tx) => splitByFollower(tx, effect));
    wake.effects();
    return;
  }
  const seconds = putOffSeconds(effect);
  const reason = reasonOf(error);
  await database.run((db) => putOffEffect(db, effect.id, { error: reason, seconds }));
  const { kind, runId, scheduleId, failures } = effect;
  events.emit({
    type: 'effectPutOff',
    kind,
    runId,
    scheduleId,
    error: reason,
    failures: failures + 1,
    seconds,
  });
}

/** How long an effect or a backlog rests that the database has refused so often. */
export function putOffSeconds({ failures }: { failures: number }): number {
  return Math.min(MAX_PUT_OFF_SECONDS, MIN_PUT_OFF_SECONDS * 2 ** Math.min(failures, 20));
}

/** Once what was applied is committed. */
function afterCommit(state: State, applied: AppliedEffects): void {
  const { events, clock, rests } = state;
  const now = clock.monotonic();
  for (const { id } of applied.unfinished) {
    const ms = Math.min(MAX_REST_MS, 2 * (rests.get(id)?.ms ?? MIN_REST_MS / 2));
    rests.set(id, { until: now + ms, ms });
  }
  for (const { id } of applied.done) rests.delete(id);
  // The pausing loop deletes them; if that fails, they are found again.
  for (const { id } of applied.toPause) rests.set(id, { until: now + PAUSE_REST_MS, ms: PAUSE_REST_MS });
  if (applied.schedules > 0) events.emit({ type: 'overlapsJudged', count: applied.schedules });
  emitJudged(events, applied.judged);
  if (applied.failed.length > 0)
    events.emit({
      type: 'dependentsFailed',
      count: applied.failed.length,
      runIds: applied.failed.slice(0, MAX_NAMED),
    });
  for (const runId of applied.reopened) events.emit({ type: 'runRetried', runId, scheduleId: null, was: 'failed' });
  emitAlerts(events, applied.alerts);
  emitUnmet(events, applied.done);
  if (applied.cancels.length > 0) state.cancelTargets(applied.cancels);
  if (applied.toPause.length > 0) state.pauseSchedules(applied.toPause);
  wakeFor(state.wake, applied);
  if (applied.toSend.length > 0) state.offer(applied.toSend);
}

const PAUSE_REST_MS = 30_000;
const MAX_NAMED = 10;

/** Each bound that a run has broken has one effect, whatever wrote it. */
function emitUnmet(events: EventBus, done: readonly Effect[]): void {
  const runs = done.flatMap(({ kind, alertKind, runId, scheduleId, finishedAt: passedAt }) => {
    const bound = kind === 'breaks' && BOUNDS.find((one) => ALERT_OF_BOUND[one] === alertKind);
    return bound ? [{ runId, scheduleId, bound, passedAt }] : [];
  });
  if (runs.length > 0) events.emit({ type: 'runsUnmet', runs });
}

function idOf({ id }: Effect): number {
  return id;
}
