import type { Alert } from '../alert.ts';

/** The page of the run that opened the episode, else that of its schedule. Null: where the dashboard is was not said. */
export function alertUrl(
  publicUrl: string | null,
  { scheduleId, runId }: Pick<Alert, 'scheduleId' | 'runId'>,
): string | null {
  if (publicUrl === null) return null;
  const base = publicUrl.replace(/\/+$/, '');
  return runId === null ? `${base}/schedules/${scheduleId}` : `${base}/runs/${runId}`;
}
