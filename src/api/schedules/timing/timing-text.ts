import { LRUCache } from 'lru-cache';
import { CronError, MAX_EXPRESSION_LENGTH } from '../../../core/cron/cron.ts';
import { parseCron } from '../../../core/cron/cron-parse.ts';
import { isZone } from '../../../core/zones/zone.ts';

/** Twice the most of each that one batch can contain. */
const REMEMBERED = 2000;
const MAX_ZONE_LENGTH = 256;

const cronFaults = new LRUCache<string, { fault: string | null }>({ max: REMEMBERED });
const zones = new LRUCache<string, boolean>({ max: REMEMBERED });

/** The fault of an expression; it does not depend on the schedule. */
export function cronFault(expression: string): string | null {
  if (expression.length > MAX_EXPRESSION_LENGTH) return findCronFault(expression);
  const known = cronFaults.get(expression) ?? { fault: findCronFault(expression) };
  cronFaults.set(expression, known);
  return known.fault;
}

export function isKnownZone(name: string): boolean {
  if (name.length > MAX_ZONE_LENGTH) return false;
  const known = zones.get(name) ?? isZone(name);
  zones.set(name, known);
  return known;
}

function findCronFault(expression: string): string | null {
  try {
    parseCron(expression, '');
    return null;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}
