import { LRUCache } from 'lru-cache';
import { CronError } from './cron-error.ts';
import { type CronTimes, firesIn } from './cron-fires.ts';
import type { Cron } from './cron-expressions.ts';
import { anyOf } from './cron-list.ts';
import { MAX_EXPRESSION_LENGTH, parseCron } from './cron-parse.ts';
import { wallTimes } from './cron-wall.ts';
import { type ZoneOffsets, zoneOffsets } from '../zones/zone-offsets.ts';

export { CronError, MAX_EXPRESSION_LENGTH };
export type { CronTimes, Note } from './cron-fires.ts';

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
  const known = parsed.get(key) ?? (MAY_HASH.test(expression) ? parsed.get(ownKey()) : undefined);
  if (known) return known;
  const cron = parseCron(expression, scheduleId);
  const times = firesIn(offsetsOf(timezone), wallTimes(cron));
  parsed.set(cron.hashed ? ownKey() : key, times);
  return times;
}

const MAY_HASH = /[Hh?]/;

function offsetsOf(timezone: string | null): ZoneOffsets {
  try {
    return zoneOffsets(timezone);
  } catch {
    throw new CronError(`${timezone} is not a time zone known here`);
  }
}
