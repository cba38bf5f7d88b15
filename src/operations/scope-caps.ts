/**
 * Guarantees: no call makes more schedules than FIRELOCK_SCOPES allows a scope. Open runs are counted every few seconds: calls that
 *   come to several instances in between may make some more. What schedules fire by themselves is never refused.
 * Transaction: schedules are counted at the end of the caller's, under a lock of the scope that it keeps until it ends.
 * If the process dies here: nothing of the caller's transaction is written.
 */
import { type ScopeShare, type ScopeShares, NO_SHARES } from '../core/access/scope.ts';
import { createLoop, type Loop } from '../runtime/loop/loop.ts';
import type { LoopDeps } from '../postgres/database.ts';
import type { Transaction } from '../postgres/executor.ts';
import { countOpenRunsOf, countSchedulesUnderLock } from '../store/scopes/in-scope.ts';
import { OperationRefused } from './operation-refused.ts';
import type { OfSchedule } from '../core/runs/new-run.ts';
import { laneInScope } from '../core/runs/run-lane.ts';
import type { RunRecord } from '../core/runs/run-record.ts';
import { NO_SCHEDULE, scheduleIdOf } from '../postgres/sql/rows.ts';

/** A call asks for more than FIRELOCK_SCOPES allows the scope. */
function capReached({ prefix }: ScopeShare, cap: number, what: 'schedules' | 'open runs'): OperationRefused {
  const message = `names that begin with ${prefix} may have at most ${cap} ${what} (FIRELOCK_SCOPES)`;
  return new OperationRefused(422, message);
}

/**
 * To be called last in the transaction that has created some of these schedules: then whoever has a scope's lock waits for nothing more.
 * @throws OperationRefused
 */
export async function refuseTooManySchedules(
  tx: Transaction,
  shares: ScopeShares | undefined,
  written: readonly { change: string; schedule: { id: string } }[],
): Promise<void> {
  const created = written.flatMap(({ change, schedule: { id } }) => (change === 'created' ? [id] : []));
  const capped = (shares ?? NO_SHARES).filter(({ prefix }) => created.some((id) => id.startsWith(prefix)));
  // In one order everywhere, so that no two transactions wait for each other.
  for (const share of capped.sort((a, b) => (a.prefix < b.prefix ? -1 : 1))) {
    const { prefix, maxSchedules } = share;
    if (maxSchedules === null) continue;
    if ((await countSchedulesUnderLock(tx, prefix, maxSchedules)) > maxSchedules)
      throw capReached(share, maxSchedules, 'schedules');
  }
}

/** How many runs callers may still ask for. */
export interface OpenRunCaps {
  /** A run for each of these names: of its schedule, or its own key. @throws OperationRefused, and then none of them counts */
  take(names: readonly (string | null)[]): void;
  /** The same for one of many that are not refused together: null, and it counts. */
  takeOrSay(name: string | null): OperationRefused | null;
}

interface CapsDeps extends LoopDeps {
  scopeShares: ScopeShares;
}

/** Nothing is capped. */
export const NO_CAPS: OpenRunCaps = { take: () => undefined, takeOrSay: () => null };

/** How often open runs are counted; seldom enough that it takes a twentieth of the time at most. */
const COUNT_EVERY_MS = 3_000;
const TIMES_ITS_WORK = 20;

interface Capped {
  share: ScopeShare;
  cap: number;
  /** Open runs at the last count, and those that calls have asked for since that began. */
  counted: number;
  taken: number;
}

/** Null: no scope has a cap, and there is nothing to count. */
export function createOpenRunCaps(deps: CapsDeps): { caps: OpenRunCaps; loop: Loop | null } {
  const capped = deps.scopeShares.flatMap((share): Capped[] =>
    share.maxOpenRuns === null ? [] : [{ share, cap: share.maxOpenRuns, counted: 0, taken: 0 }],
  );
  if (capped.length === 0) return { caps: NO_CAPS, loop: null };
  const { clock, events } = deps;
  const loop = createLoop({ name: 'scope-caps', clock, events, body: () => count(deps, capped) });
  return { caps: capsOf(capped), loop };
}

function capsOf(capped: readonly Capped[]): OpenRunCaps {
  const takeOrSay = (names: readonly (string | null)[]) => {
    const asked = capped.map((one) => ({ one, more: countOf(names, one) }));
    const full = asked.find(({ one, more }) => more > 0 && one.counted + one.taken + more > one.cap);
    if (full) return capReached(full.one.share, full.one.cap, 'open runs');
    for (const { one, more } of asked) one.taken += more;
    return null;
  };
  return {
    take: (names) => {
      const refusal = takeOrSay(names);
      if (refusal) throw refusal;
    },
    takeOrSay: (name) => takeOrSay([name]),
  };
}

function countOf(names: readonly (string | null)[], { share }: Capped): number {
  return names.reduce((count, name) => count + Number(name?.startsWith(share.prefix) === true), 0);
}

async function count({ database, clock }: CapsDeps, capped: readonly Capped[]): Promise<number> {
  const began = clock.monotonic();
  const before = capped.map(({ taken }) => taken);
  const counts = await database.run((db) =>
    countOpenRunsOf(
      db,
      capped.map(({ share }) => share.prefix),
    ),
  );
  for (const [index, one] of capped.entries()) {
    one.counted = counts[index] ?? 0;
    one.taken -= before[index] ?? 0;
  }
  return Math.max(COUNT_EVERY_MS, (clock.monotonic() - began) * TIMES_ITS_WORK);
}

/** By what scopes have a run without a schedule. */
export function nameOfOneOff({ scheduleId, key, notifierId }: RunRecord): string | null {
  return scheduleId === NO_SCHEDULE ? (notifierId ?? key) : null;
}

/** The name by which a run has a scope; null: it has none. */
export function nameOfRun({ scheduleId, key }: Pick<RunRecord, 'scheduleId' | 'key'>): string | null {
  return scheduleIdOf(scheduleId) ?? key;
}

/** What a run takes from its schedule, in the lane of that one's scope. */
export function inLaneOfScope(definition: OfSchedule | null, shares: ScopeShares = NO_SHARES): OfSchedule | null {
  if (definition === null) return null;
  return { ...definition, lane: laneInScope(shares, definition.lane, definition.scheduleId) };
}
