import type { ParentRun } from './run.ts';

/** What an `after` run follows where no run has ended: a schedule became late. It has the fields of a ParentRun. */
interface LateParent {
  runId: null;
  scheduleId: string;
  status: 'late';
  reason: null;
  error: null;
  result: null;
}

export type Parent = ParentRun | LateParent;

/**
 * How the row of a run that follows a late schedule names it: by its uid, in the place of a parent run's id. Both are UUIDv7; to tell
 * the two apart, the uid is written as UUIDv8 (RFC 9562 §5.8).
 */
export function lateParentId(scheduleUid: string): string {
  return withVersion(scheduleUid, '8');
}

/** The uid of the late schedule; null: it is the id of a run. */
export function lateScheduleUid(parentId: string): string | null {
  return parentId[VERSION] === '8' ? withVersion(parentId, '7') : null;
}

const VERSION = '00000000-0000-'.length;

function withVersion(uuid: string, version: string): string {
  return uuid.slice(0, VERSION) + version + uuid.slice(VERSION + 1);
}

export function lateParent(scheduleId: string): LateParent {
  return { runId: null, scheduleId, status: 'late', reason: null, error: null, result: null };
}

/** Whether it is the end of a run, which the requests list among `dependencies`. */
export function isParentRun(parent: Parent): parent is ParentRun {
  return parent.runId !== null;
}
