/** The expressions of a schedule: one, or several, each of which makes it fire. */
export type Cron = string | readonly string[];

export const MIN_EXPRESSIONS = 2;
export const MAX_EXPRESSIONS = 16;

/** Whether a field may be hashed from the schedule's id. */
export function mayHash(cron: Cron): boolean {
  return typeof cron === 'string' ? HASHED.test(cron) : cron.some((expression) => HASHED.test(expression));
}

/** Not the letter of THU. */
const HASHED = /\?|(?<!T)H/i;

export function expressionsOf(cron: Cron): readonly string[] {
  return typeof cron === 'string' ? [cron] : cron;
}
