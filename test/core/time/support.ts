import { cronTimes } from '../../../src/core/cron/cron.ts';
import { DEFAULT_TIMING, type Timing } from '../../../src/core/timing/timing.ts';

export const at = (text: string): number => Date.parse(text);

/** With the defaults of a schedule. */
export function timingOf(given: Partial<Timing>): Timing {
  return { ...DEFAULT_TIMING, cron: null, everySeconds: null, at: null, after: null, ...given };
}

/** The next fires strictly after an instant, as ISO texts; fewer where it ends. */
export function firesAfter(
  expression: string | readonly string[],
  timezone: string | null,
  from: string,
  count: number,
  scheduleId = '',
): string[] {
  const times = cronTimes(expression, timezone, scheduleId);
  const fires: string[] = [];
  for (let next = times.next(at(from)); next !== null && fires.length < count; next = times.next(next)) {
    fires.push(new Date(next).toISOString().replace('.000Z', 'Z'));
  }
  return fires;
}
