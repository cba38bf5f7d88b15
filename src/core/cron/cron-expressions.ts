/** The expressions of a schedule: one, or several, each of which makes it fire. */
export type Cron = string | readonly string[];

export const MIN_EXPRESSIONS = 2;
export const MAX_EXPRESSIONS = 16;

export function expressionsOf(cron: Cron): readonly string[] {
  return typeof cron === 'string' ? [cron] : cron;
}
