import type { Expected } from '../../core/time/expected-occurrences.ts';
import type { Occurrence } from '../../core/time/occurrences.ts';
import { fireTimes } from '../../core/time/fire-times.ts';
import { calendarReachOf } from '../../core/days/day-times.ts';
import { calendarIdsOf } from '../../core/timing/timing.ts';
import type { Database } from '../../postgres/database.ts';
import { readCalendars } from '../../store/calendars/calendar-histories.ts';
import { type ScheduleIncarnation, versionSpans } from '../../store/reports/occurrence-rows.ts';

/**
 * Says where fires come from that an edit of the definition made at once: they lie before their own version, so no version in force at
 * their time expects them.
 */
export async function withMovesByEdits(
  database: Database,
  incarnations: readonly ScheduleIncarnation[],
  expected: readonly Expected[],
  page: readonly Occurrence[],
): Promise<Occurrence[]> {
  const explained = new Set(expected.map(positionOf));
  const others = page.filter((one) => one.runId !== null && !explained.has(positionOf(one)));
  const found = new Map<string, string | null>();
  for (const [, some] of Map.groupBy(others, ({ uid, version }) => `${uid} ${version}`)) {
    const moveOf = await moveUnder(database, incarnations, some);
    for (const one of some) found.set(positionOf(one), moveOf(one.fireAt));
  }
  return page.map((one) => ({ ...one, movedFrom: found.get(positionOf(one)) ?? one.movedFrom }));
}

const positionOf = ({ uid, fireAt }: { uid: string; fireAt: number }): string => `${uid} ${fireAt}`;

/** By the version under which they are recorded. */
async function moveUnder(
  database: Database,
  incarnations: readonly ScheduleIncarnation[],
  some: readonly Occurrence[],
): Promise<(fireAt: number) => string | null> {
  const [first] = some;
  const incarnation = incarnations.find(({ uid }) => uid === first?.uid);
  if (!first || !incarnation) return () => null;
  return database.run(async (db) => {
    const [span] = await versionSpans(db, incarnation, { from: first.version, limit: 1 });
    if (span?.version !== first.version) return () => null;
    const { timing, identity } = span;
    const earliest = Math.min(...some.map(({ fireAt }) => fireAt));
    const known = await readCalendars(db, calendarIdsOf(timing), earliest - calendarReachOf(timing));
    try {
      const times = fireTimes(timing, identity, known.histories);
      return (fireAt: number) => times.moveOf(fireAt)?.from ?? null;
    } catch {
      return () => null;
    }
  });
}
