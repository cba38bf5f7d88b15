import { type Cron, expressionsOf } from '../cron/cron-expressions.ts';
import { parseCron } from '../cron/cron-parse.ts';
import { daysInWords } from './describe-days.ts';
import { timesInWords } from './describe-times.ts';

/** Describes in English what firelock fires: `H` and `?` with their values for this schedule. Throws CronError. */
export function describeCron(cron: Cron, scheduleId: string): string {
  const [first = '', ...others] = expressionsOf(cron).map((one) => describeExpression(one, scheduleId));
  // Semicolons: each description has commas of its own.
  const last = others.length - 1;
  const further = others.map((text, index) => `; ${index === last ? 'and ' : ''}${inSentence(text)}`);
  return [first, ...further].join('');
}

const inSentence = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

function describeExpression(expression: string, scheduleId: string): string {
  // It describes the sets of values, not their spelling: `*/45` is not “every 45 minutes”.
  const parsed = parseCron(expression, scheduleId);
  return `${timesInWords(parsed)}${daysInWords(parsed)}`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;
/** Up to this value, one unit is easier to read than two. */
const MAX_OF_ONE_UNIT = 120;

/** `Every 90 seconds`, `Every day`, `Every 2 hours 1 minute`. */
export function describeInterval(everySeconds: number): string {
  for (const [unit, size] of UNITS) {
    const count = everySeconds / size;
    if (count === 1) return `Every ${unit}`;
    if (Number.isInteger(count) && (count <= MAX_OF_ONE_UNIT || unit === 'day'))
      return `Every ${counted(count, unit)}`;
  }
  let left = everySeconds;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) parts.push(counted(count, unit));
  }
  return `Every ${parts.join(' ')}`;
}

const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`;
