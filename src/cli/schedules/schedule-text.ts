import type { ScheduleAnswer } from '../server/answers.ts';

/** When it fires, on one line. */
export function triggerText({ cron, everySeconds, at, after }: ScheduleAnswer): string {
  if (cron) return [cron].flat().join(' | ');
  if (everySeconds) return `every ${everySeconds} s`;
  if (at) return `at ${at}`;
  return after ? `after ${after.scheduleId} (${after.on.join(', ')})` : '';
}

/** Its status, and that it is late. */
export function statusText({ status, late }: ScheduleAnswer): string {
  return late ? `${status}, late` : status;
}

export function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}:${value}`)
    .join(' ');
}
