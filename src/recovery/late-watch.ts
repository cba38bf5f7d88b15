/**
 * Guarantees: a schedule without a success in `successWithinSeconds` is found late within seconds, once for each episode, over any
 *   instances; what is to follow from that is written in the same commit.
 * Transaction: one for a batch of schedules; rows of outcome_watches that others have locked are left for the next pass.
 * If the process dies here: the rows say when to look again, and any instance does.
 */
import type { Instant } from '../core/instant.ts';
import { type OutcomeWatch, judgeLateness } from '../core/schedules/outcome-watch.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Lease } from '../runtime/instance-lease.ts';
import { inHalves } from '../runtime/loop/batch.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { type Rests, createRests } from '../runtime/loop/rests.ts';
import { reasonOf } from '../runtime/reason.ts';
import type { Database } from '../postgres/database.ts';
import { batchFaultOf } from '../postgres/errors.ts';
import type { Transaction } from '../postgres/executor.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import {
  type AlertCause,
  type Healed,
  healOpenAlerts,
  writeAlertEffects,
} from '../store/alerts/alert-effects.ts';
import { type LateSchedule, writeLateEffects } from '../store/effects/insert-effects.ts';
import { type LateLook, findLooks, lastSuccesses, lockLooks } from '../store/schedules/watches/late-looks.ts';
import { saveWatches } from '../store/schedules/watches/outcome-watches.ts';

interface LateWatchDeps {
  database: Database;
  clock: Clock;
  events: EventBus;
  lease: Lease;
  wake: Wake;
}

/** The API promises that lateness is noticed within ten seconds; a success has one of them to be written in. */
const LOOK_EVERY_MS = 4_000;
const BATCH = 200;

interface State extends LateWatchDeps {
  /** Schedules whose row was refused. */
  rests: Rests;
}

export function createLateWatch(deps: LateWatchDeps): Loop {
  const { clock, events } = deps;
  const state: State = { ...deps, rests: createRests({ clock, events, loop: 'late-watch' }) };
  return createLoop({ name: 'late-watch', clock, events, body: () => pass(state) });
}

async function pass(state: State): Promise<number> {
  const { database, events, lease, rests } = state;
  // After an outage, the waiting outcomes are written before the lease is valid again: a success among them counts.
  if (!lease.isValid()) return LOOK_EVERY_MS;
  const uids = await database.run((db) => findLooks(db, { limit: BATCH, besides: rests.keys() }));
  await inHalves(uids, {
    work: (some) => look(state, some),
    faultOf: batchFaultOf,
    wasSetAside: (uid) => rests.wasSetAside(uid),
    setAside: (uid, error) => {
      rests.add(uid);
      events.emit({ type: 'lateLookRefused', scheduleUid: uid, error: reasonOf(error) });
    },
  });
  return uids.length === BATCH ? MORE_MS : LOOK_EVERY_MS;
}

const MORE_MS = 100;

async function look({ database, events, wake }: State, uids: readonly string[]): Promise<void> {
  const { seen, effects } = await database.transaction((tx) => judgeLocked(tx, uids));
  const begun = seen.filter(({ begins }) => begins);
  const over = seen.filter(({ before, after }) => before.lateSince !== null && after.lateSince === null);
  if (begun.length > 0) events.emit({ type: 'schedulesLate', schedules: begun.map(lateOf) });
  const scheduleIds = over.map(({ scheduleId }) => scheduleId);
  if (scheduleIds.length > 0) events.emit({ type: 'schedulesLateNoMore', scheduleIds });
  wakeFor(wake, { effects });
}

interface Seen {
  scheduleId: string;
  version: number;
  before: OutcomeWatch;
  after: OutcomeWatch;
  begins: boolean;
}

async function judgeLocked(
  tx: Transaction,
  uids: readonly string[],
): Promise<{ seen: Seen[]; effects: number }> {
  const looks = await lockLooks(tx, uids);
  // After the locks: a success that is not visible here was written later.
  const now = await databaseNow(tx);
  const successes = await lastSuccesses(
    tx,
    looks.filter(({ rests }) => !rests).map(({ watch }) => watch),
  );
  const seen = looks.map((one) => judge(one, successes.get(one.watch.scheduleUid) ?? null, now));
  await saveWatches(
    tx,
    seen.map(({ after }) => after),
  );
  const late = seen.filter(({ begins }) => begins);
  const followed = await writeLateEffects(tx, late.map(lateScheduleOf));
  const told = await writeAlertEffects(tx, late.map(causeOf));
  const healed = await healOpenAlerts(tx, seen.flatMap(healedBy));
  return { seen, effects: followed + told + healed };
}

function judge({ watch, scheduleId, version, rests }: LateLook, found: Instant | null, now: Instant): Seen {
  const known = watch.lastSuccessAt;
  const lastSuccessAt = found === null ? known : Math.max(found, known ?? found);
  const { begins, ...judged } = judgeLateness({ ...watch, lastSuccessAt }, now, rests);
  return { scheduleId, version, before: watch, after: { ...watch, lastSuccessAt, ...judged }, begins };
}

function lateScheduleOf({ scheduleId: id, version, after }: Seen): LateSchedule {
  return { uid: after.scheduleUid, id, version, lateSince: sinceOf(after) };
}

function causeOf(seen: Seen): AlertCause {
  const schedule = lateScheduleOf(seen);
  return {
    ...{ kind: 'breaks', alertKind: 'late', runId: null, status: 'late' },
    ...{ schedule, at: schedule.lateSince },
  };
}

/** It was late, and has succeeded since. */
function healedBy({ before, after, scheduleId: id, version }: Seen): Healed[] {
  const { scheduleUid: uid, lastSuccessAt } = after;
  if (before.lateSince === null || lastSuccessAt === null || lastSuccessAt < before.lateSince) return [];
  return [{ schedule: { uid, id, version }, alertKinds: ['late'], at: lastSuccessAt }];
}

function lateOf({ scheduleId, after }: Seen): { scheduleId: string; since: Instant } {
  return { scheduleId, since: sinceOf(after) };
}

function sinceOf({ lateSince }: OutcomeWatch): Instant {
  if (lateSince === null) throw new Error('an episode began, and the schedule is not late');
  return lateSince;
}
