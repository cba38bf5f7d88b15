import { Cron } from 'croner';
import { LRUCache } from 'lru-cache';
import type { Instant } from '../instant.ts';

export const LONGEST_EXPRESSION = 256;

/** A cron expression in its zone: a pure function from an instant to the next fire strictly after it. */
export interface CronTimes {
  /** Null: never again. */
  next(after: Instant): Instant | null;
}

/** What is wrong with an expression, in words for whoever wrote it. */
export class CronError extends Error {
  override readonly name = 'CronError';
}

// A parsed expression holds some 80 KB, so there is not one per schedule; many schedules share few expressions.
const parsed = new LRUCache<string, CronTimes>({ max: 128 });

/** Parses 5 fields, or 6 with seconds first, or a nickname; the zone must be one that isZone knows. Throws CronError. */
export function cronTimes(expression: string, timezone: string | null): CronTimes {
  const key = `${timezone ?? 'UTC'} ${expression}`;
  const known = parsed.get(key);
  if (known) return known;
  const times = remembering(parse(expression, timezone ?? 'UTC'));
  parsed.set(key, times);
  return times;
}

const NICKNAMES = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;
const FIELD = /^[\dA-Za-z*,/\-#+]+$/;

/** Stands before croner, which accepts more than the grammar; throws CronError with a hint where there is one. */
export function checkGrammar(expression: string): void {
  if (expression.length > LONGEST_EXPRESSION) {
    throw new CronError(`is longer than ${LONGEST_EXPRESSION} characters`);
  }
  if (NICKNAMES.test(expression)) return;
  if (expression.startsWith('@')) {
    throw new CronError(
      'unknown nickname; known: @yearly @annually @monthly @weekly @daily @midnight @hourly',
    );
  }
  if (/^(CRON_)?TZ=/.test(expression)) throw new CronError('a zone goes into the field timezone');
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6) {
    throw new CronError(
      `5 fields, or 6 with seconds first; this has ${expression.trim() === '' ? 0 : fields.length}`,
    );
  }
  for (const [index, field] of fields.entries()) {
    if (!FIELD.test(field))
      throw new CronError(`field ${index + 1} (${field}) has a character cron does not know`);
    if (/[Hh?]/.test(field.replaceAll(/THU|MARCH/gi, ''))) {
      throw new CronError(`field ${index + 1} (${field}): H and ? are not supported`);
    }
  }
}

function parse(expression: string, timezone: string): CronTimes {
  checkGrammar(expression);
  try {
    const cron = new Cron(expression, { timezone, paused: true, mode: '5-or-6-parts' });
    return { next: (after) => cron.nextRun(new Date(after))?.getTime() ?? null };
  } catch (error) {
    throw new CronError(error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error));
  }
}

/** At midnight ten thousand schedules ask the same question one after the other: one answer serves them all. */
function remembering(times: CronTimes): CronTimes {
  let asked: Instant | undefined;
  let answer: Instant | null = null;
  return {
    next: (after) => {
      if (after !== asked) {
        answer = times.next(after);
        asked = after;
      }
      return answer;
    },
  };
}
