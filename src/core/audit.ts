/** The actions of callers, by their names in the audit. */
export const AUDIT_ACTIONS = [
  'schedule.create',
  'schedule.update',
  'schedule.delete',
  'schedule.fire',
  'schedule.backfill',
  'schedule.skip',
  'schedule.unskip',
  'schedule.pingKey',
  'run.create',
  'run.cancel',
  'run.retry',
  'run.complete',
  'run.release',
  'schedules.bulk',
  'runs.bulk',
  'calendar.put',
  'calendar.delete',
  'limit.put',
  'limit.delete',
  'connection.put',
  'connection.delete',
  'notifier.put',
  'notifier.delete',
  'notifier.test',
  'maintenance.on',
  'maintenance.off',
  'installation.take-over',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type AuditOutcome = 'done' | 'refused';

/**
 * Counts, versions, statuses, paths of fields, ids; a filter. Never a payload, a header or another value that a caller
 * sent as content.
 */
export type AuditDetail = Readonly<Record<string, DetailValue | Readonly<Record<string, DetailValue>>>>;

type DetailValue = string | number | boolean | null | readonly string[];

/** One change of a call. */
export interface AuditedChange {
  action: AuditAction;
  /** The id of the changed thing; null: there were many, or none in particular. */
  subject: string | null;
  /** The schedule concerned. */
  scheduleId: string | null;
  /** Of a run without a schedule, by what scopes have it: its key, or its notifier; null: it has neither. */
  runName?: string | null;
  detail: AuditDetail;
}

/** The actions whose subject is a name. */
export const ACTIONS_ON_NAMES = AUDIT_ACTIONS.filter((action) =>
  /^(calendar|limit|connection|notifier)\./.test(action),
);
