/** What the audit calls the changes that callers ask for. */
export const AUDIT_ACTIONS = [
  'schedule.create',
  'schedule.update',
  'schedule.delete',
  'schedule.fire',
  'schedule.backfill',
  'schedule.skip',
  'schedule.unskip',
  'run.create',
  'run.cancel',
  'run.retry',
  'run.complete',
  'schedules.bulk',
  'runs.bulk',
  'calendar.put',
  'calendar.delete',
  'limit.put',
  'limit.delete',
  'maintenance.on',
  'maintenance.off',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type AuditOutcome = 'done' | 'refused';

/** Counts, versions, statuses, paths of fields. Never a payload, a header or another value that a caller sent as content. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** What a call has changed. */
export interface AuditedChange {
  action: AuditAction;
  /** The id of what was changed; null: many things were, or it is not about one thing. */
  subject: string | null;
  /** The schedule that it concerns. */
  scheduleId: string | null;
  detail: AuditDetail;
}
