import { LRUCache } from 'lru-cache';
import { type CronTimes, firesIn } from './cron-fires.ts';
import { type Cron, expressionsOf, mayHash } from './cron-fields.ts';
import { CronError, MAX_EXPRESSION_LENGTH, parseCron } from './cron-parse.ts';
import { type DayRule, type LocalTimes, dayPatternFor, daysNamed, isPeriodic, localTimesOf } from './cron-wall.ts';
import { everyKindOf } from './day-pattern.ts';
import { leastOf, remembering } from './remembering.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';

export { CronError, MAX_EXPRESSION_LENGTH };
export type { CronTimes } from './cron-fires.ts';

const parsed = new LRUCache<string, CronTimes>({ max: 10_000 });

/** One expression, or several in one zone. Throws CronError. */
export function cronTimes(cron: Cron, timezone: string | null, scheduleId: string): CronTimes {
  if (typeof cron === 'string') return expressionTimes(cron, timezone, scheduleId);
  return anyOf(cron.map((expression) => expressionTimes(expression, timezone, scheduleId)));
}

/**
 * Parses 5 fields, or 6 with seconds first, or a nickname. The values for `H` and `?` depend on the schedule's id; all
 * other expressions are shared by all schedules.
 */
function expressionTimes(expression: string, timezone: string | null, scheduleId: string): CronTimes {
  const key = `${timezone ?? 'UTC'} ${expression}`;
  const ownKey = (): string => `${key} ${scheduleId}`;
  const known = parsed.get(key) ?? (mayHash(expression) ? parsed.get(ownKey()) : undefined);
  if (known) return known;
  const cron = parseCron(expression, scheduleId);
  const times = firesIn(offsetsOf(timezone), localTimesOf(cron));
  parsed.set(cron.hashed ? ownKey() : key, times);
  return times;
}

/** The expressions as rules of days need them. Throws CronError. */
export function readCron(cron: Cron, scheduleId: string): ReadCron {
  const read = expressionsOf(cron).map((expression) => parseCron(expression, scheduleId));
  return {
    days: () => [...new Set(read.map(daysNamed))].sort(),
    localTimes: (rule) => read.map((one) => localTimesOf(one, rule)),
  };
}

interface ReadCron {
  /** The same texts for the same days, whatever the times of day. */
  days(): string[];
  /** The local times of each expression, on days that a rule keeps; null: on all. */
  localTimes(rule: DayRule | null): LocalTimes[];
}

/** Fires when any of these local times comes. Throws CronError. */
export function timesOfLocals(localTimes: readonly LocalTimes[], timezone: string | null): CronTimes {
  const zone = offsetsOf(timezone);
  const [only, ...others] = localTimes.map((wall) => firesIn(zone, wall));
  return only && others.length === 0 ? only : anyOf([...(only ? [only] : []), ...others]);
}

/** It selects all 24 hours, so it fires by real time. Throws CronError. */
export function isPeriodicCron(expression: string): boolean {
  return isPeriodic(localTimesOf(parseCron(expression, '')));
}

/**
 * In short steps, computes the days of an expression: its fire times would do that when first asked, which takes some
 * milliseconds at once. Throws CronError.
 */
export function* exploreDays(
  expression: string,
  timezone: string | null,
  scheduleId: string,
): Generator<void, void, void> {
  const times = expressionTimes(expression, timezone, scheduleId);
  if (explored.has(times)) return;
  yield* everyKindOf(dayPatternFor(parseCron(expression, scheduleId)));
  explored.add(times);
}

const explored = new WeakSet<CronTimes>();

function offsetsOf(timezone: string | null): ZoneOffsets {
  try {
    return zoneOffsets(timezone);
  } catch {
    throw new CronError(`${timezone} is not a time zone known here`);
  }
}

/**
 * Fires when any member does. If several fire at one moment, that is one fire. In a walk from fire to fire, only the members that have
 * just fired compute their next one.
 */
function anyOf(members: readonly CronTimes[]): CronTimes {
  const firstsFrom = members.map((times) => remembering((from) => times.next(from - 1)));
  return {
    next: (after) => leastOf(firstsFrom, (firstFrom) => firstFrom(after + 1)),
    // Only a member that fires at this moment knows that the clocks moved it. In a repeated hour all members agree: the
    // zone decides.
    noteOf: (at) => {
      const notes = members.map((times) => times.noteOf(at));
      return notes.includes('moved by DST') ? 'moved by DST' : (notes[0] ?? null);
    },
  };
}
