import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { CronError, LONGEST_EXPRESSION } from '../../core/time/cron.ts';
import { parseCron } from '../../core/time/cron-parse.ts';
import { isZone } from '../../core/time/zone.ts';
import { isObject } from '../json-body.ts';

/** What a batch holds at most, twice, of each. */
const REMEMBERED = 2000;
const LONGEST_ZONE = 256;

const cronFaults = new LRUCache<string, { fault: string | null }>({ max: REMEMBERED });
const zones = new LRUCache<string, boolean>({ max: REMEMBERED });

/** What is wrong with an expression, which does not depend on the schedule that it is for. */
export function cronFault(expression: string): string | null {
  if (expression.length > LONGEST_EXPRESSION) return findCronFault(expression);
  const known = cronFaults.get(expression) ?? { fault: findCronFault(expression) };
  cronFaults.set(expression, known);
  return known.fault;
}

export function isKnownZone(name: string): boolean {
  if (name.length > LONGEST_ZONE) return false;
  const known = zones.get(name) ?? isZone(name);
  zones.set(name, known);
  return known;
}

/** The same for each item of a batch, before all of it is checked at once: with others' turns in between. */
export async function checkAhead(body: unknown): Promise<void> {
  const items = isObject(body) ? body['items'] : undefined;
  if (!Array.isArray(items) || items.length > REMEMBERED / 2) return;
  for (const [index, item] of items.entries()) {
    if (index % SLICE === SLICE - 1) await setImmediate();
    if (!isObject(item)) continue;
    const { cron, timezone } = item;
    if (typeof cron === 'string') cronFault(cron);
    if (typeof timezone === 'string') isKnownZone(timezone);
  }
}

const SLICE = 10;

function findCronFault(expression: string): string | null {
  try {
    parseCron(expression, '');
    return null;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}
