/**
 * Guarantees: days of history, of the audit and of logs older than the retention are dropped whole and unread, one after the other; then
 *   the keys, dependencies, batches, late logs, definitions and versions of calendars that nothing uses any more.
 * Transaction: one for each day, sent as one message; one for each page of the rest.
 * If the process dies here: what is done is done; the next pass, on any instance, finds what is left.
 */
import { type Instant, DAY_MS } from '../core/instant.ts';
import { firstRunIdAt } from '../core/runs/run.ts';
import { horizonOf } from '../core/time/plan-due.ts';
import { type Loop, createLoop } from '../runtime/loop/loop.ts';
import { type PageSize, createPageSize } from '../runtime/loop/batch.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import type { LoopDeps } from '../postgres/database.ts';
import { isNotNow, isTableGone } from '../postgres/errors.ts';
import type { Executor } from '../postgres/executor.ts';
import { dropReplacedBefore } from '../store/calendars/calendar-rows.ts';
import { type Sweep, type SweptPage, moveKeptLogs, sweepLogs, SWEEPS } from '../store/history/leftovers.ts';
import { LOG_DAYS_LATER } from '../store/runs/logs/append-log.ts';
import {
  BY_DAY,
  EMPTIED_BY_DAY,
  type Partition,
  deleteOtherBefore,
  dropPartition,
  listPartitions,
} from '../postgres/history-partitions.ts';
import { LONGEST_REACH_MS } from '../core/days/day-times.ts';
import { type DefinitionWalk, createDefinitionWalk } from './definition-walk.ts';
import { FIRST_UUID } from '../postgres/sql/arrays.ts';

export interface DropPartitionsDeps extends LoopDeps {
  retentionDays: number;
  /** The time between two looks for old days; the usual value unless a test sets another. */
  intervalMs?: number;
  /** How many rows are deleted at once. */
  batch?: number;
}

const INTERVAL_MS = 600_000;
const BATCH = 1_000;
/** Of runs whose logs are moved or deleted: each may have a megabyte of each attempt. */
const LOGS_BATCH = 20;
/** A run that ended just inside the retention is kept, however the clocks differ. */
const MARGIN_DAYS = 1;
/** Ms of rest for each ms of work: this work may be slow. */
const REST = 4;
const MIN_REST_MS = 20;
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

interface State extends DropPartitionsDeps {
  definitions: DefinitionWalk;
  /** The round under way; each of its steps yields. */
  steps: AsyncGenerator<void, void, void> | null;
  size: PageSize;
  /** Of logs. */
  logSize: PageSize;
  /** Monotonic: when the last sweep ended. */
  sweptAt: number;
}

export function createPartitionDropper(deps: DropPartitionsDeps): Loop {
  const { database, clock, events, batch = BATCH } = deps;
  const state: State = {
    ...deps,
    size: createPageSize(batch),
    logSize: createPageSize(Math.min(batch, LOGS_BATCH)),
    definitions: createDefinitionWalk(database, clock, batch),
    steps: null,
    sweptAt: -Infinity,
  };
  return createLoop({ name: 'retention', clock, body: () => pass(state), events });
}

/** One step of a round. */
async function pass(state: State): Promise<number> {
  const { clock, intervalMs = INTERVAL_MS } = state;
  const began = clock.monotonic();
  state.steps ??= round(state);
  const step = await state.steps.next().catch((error: unknown) => {
    state.steps = null;
    throw error;
  });
  if (!step.done) return Math.max(MIN_REST_MS, REST * (clock.monotonic() - began));
  state.steps = null;
  return intervalMs;
}

async function* round(state: State): AsyncGenerator<void, void, void> {
  const { events, definitions } = state;
  const before = await keptSince(state);
  const failures: unknown[] = [];
  const partitions: Partition[] = [];
  for (const parent of BY_DAY) partitions.push(...(await state.database.run((db) => listPartitions(db, parent))));
  const old = partitions.filter((one) => one.day + DAY_MS + laterMs(one) <= before);
  const inUse: Partition[] = [];
  const dropping: Dropping = {
    drop: (partition) => drop(state, partition, () => inUse.push(partition)),
    failures,
  };
  const dropped = yield* dropEach(
    old.filter(({ parent }) => parent !== 'run_logs'),
    dropping,
  );
  for (const parent of EMPTIED_BY_DAY) {
    yield* inPages(state, (db, limit) => deleteOtherBefore(db, before, limit, parent));
  }
  yield* dropEach(yield* withoutKeptLogs(state, logsToDrop(old, dropped), failures), dropping);
  if (state.clock.monotonic() - state.sweptAt >= DAY_MS) yield* sweepLeftovers(state, before);
  while (await definitions.step(before)) yield;
  yield* inPages(state, (db, limit) => dropReplacedBefore(db, before - LONGEST_REACH_MS, limit));
  // Once more, since a statement, or a loop that makes partitions, may have used them for a moment only.
  const later = yield* dropEach(inUse, {
    drop: (partition) => drop(state, partition, (error) => tellOfDelay(state, partition, error)),
    failures,
  });
  dropped.push(...later);
  const days = dropped.flatMap(({ parent, day }) => (parent === 'history' ? [day] : []));
  events.emit({ type: 'historyDropped', days, definitions: definitions.dropped() });
  const kept = partitions.filter(({ parent, day }) => parent === 'history' && !days.includes(day));
  const late = kept.filter(({ day }) => day + DAY_MS <= before).length;
  events.emit({ type: 'historySeen', days: kept.length, oldest: kept[0]?.day ?? null, late });
  if (failures.length > 0) throw failures[0];
}

/** A log is written for some time after the day on which its run was due. */
function laterMs({ parent }: Partition): number {
  return parent === 'run_logs' ? LOG_DAYS_LATER * DAY_MS : 0;
}

/** Once their runs are gone: where a day of history could not be dropped, its runs are kept, and so are the logs that may be theirs. */
function logsToDrop(old: readonly Partition[], dropped: readonly Partition[]): Partition[] {
  const kept = old.filter((one) => one.parent === 'history' && !dropped.includes(one));
  return old.filter((one) => one.parent === 'run_logs' && !kept.some(({ day }) => day >= one.day));
}

/** Answers the days that have no log of a kept run any more; one from which the logs cannot be moved delays no other. */
async function* withoutKeptLogs(
  state: State,
  old: readonly Partition[],
  failures: unknown[],
): AsyncGenerator<void, Partition[], void> {
  const ready: Partition[] = [];
  for (const partition of old) {
    try {
      yield* inPages(state, (db, limit) => moveKeptLogs(db, partition.day, limit), state.logSize);
      ready.push(partition);
    } catch (error) {
      failures.push(error);
    }
  }
  return ready;
}

interface Dropping {
  /** False: it is not dropped. */
  drop: (partition: Partition) => Promise<boolean>;
  failures: unknown[];
}

/** Answers what it dropped. A day that cannot be dropped, for example because a user's view depends on it, delays no other. */
async function* dropEach(
  partitions: readonly Partition[],
  { drop, failures }: Dropping,
): AsyncGenerator<void, Partition[], void> {
  const dropped: Partition[] = [];
  for (const partition of partitions) {
    if (await drop(partition).catch((error: unknown) => void failures.push(error))) dropped.push(partition);
    yield;
  }
  return dropped;
}

/** False: another transaction uses it, or another instance has dropped it. */
async function drop({ database }: State, partition: Partition, onInUse: (error: unknown) => void): Promise<boolean> {
  try {
    await database.run((db) => dropPartition(db, partition));
    return true;
  } catch (error) {
    if (isNotNow(error)) onInUse(error);
    else if (!isTableGone(error)) throw error;
    return false;
  }
}

/** The next round tries again. */
function tellOfDelay({ events }: State, { day }: Partition, error: unknown): void {
  events.emit({ type: 'historyDelayed', work: 'drop', day, error, forMs: 0, lasts: false });
}

/** `page` deletes, or moves, as many as it may, and answers how many. */
async function* inPages(
  { database, ...state }: State,
  page: (db: Executor, limit: number) => Promise<number>,
  size = state.size,
): AsyncGenerator<void, void, void> {
  const isMore = () => size.fit(async (limit) => (await database.run((db) => page(db, limit))) === limit);
  while (await isMore()) yield;
}

/**
 * Once a day, since history drops whole days. It looks through what runs left that were due long ago, and those
 * that were cancelled long before they were due.
 */
async function* sweepLeftovers(state: State, before: Instant): AsyncGenerator<void, void, void> {
  const toCome = firstRunIdAt(before + keptDays(state) * DAY_MS);
  const { size, logSize } = state;
  const sweeps = [...SWEEPS.map((page) => ({ page, size })), { page: sweepLogs, size: logSize }];
  for (const swept of sweeps) {
    yield* sweep(state, { after: FIRST_UUID, before: firstRunIdAt(before) }, swept);
    yield* sweep(state, { after: toCome, before: LAST_ID }, swept);
  }
  state.sweptAt = state.clock.monotonic();
}

async function* sweep(
  { database }: State,
  { before, ...begin }: Omit<SweptPage, 'limit'>,
  { page, size }: { page: (db: Executor, given: SweptPage) => Promise<Sweep>; size: PageSize },
): AsyncGenerator<void, void, void> {
  for (let after: string | null = begin.after; after !== null;) {
    const from: string = after;
    after = await size.fit(
      async (limit) => (await database.run((db) => page(db, { before, after: from, limit }))).next,
    );
    yield;
  }
}

/** By both clocks: a clock that is far ahead must not make all of history look old. */
async function keptSince(state: State): Promise<Instant> {
  const now = Math.min(await state.database.run(databaseNow), state.clock.now());
  return horizonOf(now, keptDays(state));
}

function keptDays({ retentionDays }: State): number {
  return retentionDays + MARGIN_DAYS;
}
