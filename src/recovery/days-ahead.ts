/**
 * Guarantees: the coming days have tables of their own before they begin, as far as nobody is in the way; where somebody is, what is
 * due on them stands in the default partition, and all works on.
 * Transaction: one for each day, sent as one message.
 * If the process dies here: the day has its tables or it has not; the next pass, here or elsewhere, makes what is missing.
 */
import type { Instant } from '../core/instant.ts';
import type { Clock } from '../runtime/clock.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Loop, createLoop } from '../runtime/loop.ts';
import { databaseNow } from '../store/database-now.ts';
import type { Database } from '../store/database.ts';
import { isNotNow } from '../store/errors.ts';
import { DAY_MS, dayOf } from '../core/history-day.ts';
import { type History, countOther, isCovered, listHistory, makeDay } from '../store/history-days.ts';

export interface DaysAheadDeps {
  database: Database;
  /** May change the schema. */
  schemaDatabase: Database;
  clock: Clock;
  events: EventBus;
}

const INTERVAL_MS = 600_000;
const DAYS_AHEAD = 3;
/** A day further ahead for which so much is planned gets its tables now: there will be more. */
const MANY = 1_000;
/** Nobody reads or writes runs while they are moved: for so many that is a fraction of a second. */
const MOST_MOVED = 10_000;
/** Of a pass, which others watch for coming back. */
const MOST_AT_ONCE = 10;
const LIMIT_MS = 20_000;

export function createDaysAhead({ database, schemaDatabase, clock, events }: DaysAheadDeps): Loop {
  const setback = createSetback(clock, events);
  const told = new Set<Instant>();

  async function pass(): Promise<number> {
    const { today, history, standing } = await database.run(look, LIMIT_MS);
    const made: Instant[] = [];
    const wanted = missing(history, standing, today);
    const movable = wanted.filter((day) => (standing.get(day) ?? 0) <= MOST_MOVED);
    for (const day of wanted) if (!movable.includes(day)) leave(day, standing.get(day) ?? 0);
    for (const day of movable.slice(0, MOST_AT_ONCE)) {
      try {
        await schemaDatabase.run((db) => makeDay(db, history, day, standing.has(day)));
        made.push(day);
      } catch (error) {
        if (!isNotNow(error)) throw error;
        tell(history, today, made);
        return setback.after(day, error);
      }
    }
    setback.over();
    tell(history, today, made);
    return movable.length > MOST_AT_ONCE ? SOON_MS : INTERVAL_MS;
  }

  /** In the default partition. */
  function leave(day: Instant, runs: number): void {
    if (!told.has(day)) events.emit({ type: 'dayNotMade', day, runs });
    told.add(day);
  }

  function tell(history: History, today: Instant, made: readonly Instant[]): void {
    let ahead = 0;
    const isMade = (day: Instant) => isCovered(history, day) || made.includes(day);
    while (isMade(today + (ahead + 1) * DAY_MS)) ahead += 1;
    events.emit({ type: 'daysMade', days: made, ahead });
  }

  return createLoop({ name: 'days', clock, body: pass, events });
}

async function look(db: Parameters<typeof listHistory>[0]) {
  const today = dayOf(await databaseNow(db));
  const history = await listHistory(db);
  return { today, history, standing: await countOther(db, history, { from: today }) };
}

/** Today as well, unless some of it stands in the default partition already: a row that is being worked on is never moved. */
function missing(history: History, standing: ReadonlyMap<Instant, number>, today: Instant): Instant[] {
  const soon = Array.from({ length: DAYS_AHEAD + 1 }, (_, n) => today + n * DAY_MS);
  const later = [...standing].flatMap(([day, runs]) => (runs >= MANY && !soon.includes(day) ? [day] : []));
  return [...soon, ...later].filter(
    (day) => !isCovered(history, day) && !(day === today && standing.has(day)),
  );
}

const HOUR_MS = 3_600_000;
const SOON_MS = 5_000;
const LATER_MS = 30_000;

/** How long it has not worked for, and how long to wait until it is tried again. */
function createSetback(clock: Clock, events: EventBus) {
  let since: number | null = null;
  let warnedAt: number | null = null;
  return {
    over: () => {
      since = null;
      warnedAt = null;
    },
    after: (day: Instant, error: unknown): number => {
      const now = clock.monotonic();
      const isFirst = since === null;
      since ??= now;
      const lasts = now - (warnedAt ?? since) >= HOUR_MS;
      if (lasts) warnedAt = now;
      events.emit({ type: 'historyDelayed', work: 'make', day, error, forMs: now - since, lasts });
      return isFirst ? SOON_MS : now - since < HOUR_MS ? LATER_MS : INTERVAL_MS;
    },
  };
}
