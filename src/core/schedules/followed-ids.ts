/**
 * The beginning that the ids of all schedules have which an `after` with this `scheduleId` follows: `` of `*`, `billing.` of `billing.*`;
 * null: it follows the one schedule of this id.
 */
export function followedPrefix(scheduleId: string): string | null {
  return scheduleId.endsWith('*') ? scheduleId.slice(0, -1) : null;
}
