import type { Caller } from '../../core/access/roles.ts';
import type { AuditedChange } from '../../core/audit.ts';
import type { Schedule } from '../../core/schedules/schedule.ts';
import type { ScheduleChangeDeps } from '../../operations/schedules/schedule-changes.ts';
import type { ChangedSchedule } from '../../operations/schedules/schedule-writes.ts';
import { auditorFor } from '../../store/audit/record-audit.ts';
import { diffOf } from '../schedules/diff.ts';

type Note = NonNullable<ScheduleChangeDeps['note']>;

/** For a call that writes one schedule: the names of the changed fields, never their values. */
export function noteOne(caller: Caller): Note {
  const auditor = auditorFor(caller);
  return async (tx, [written], [before = null]) => {
    if (written) await auditor.note(tx, changeOf(written, before));
  };
}

function changeOf(written: ChangedSchedule, before: Schedule | null): AuditedChange {
  const { id, version } = written.schedule;
  const of = { subject: id, scheduleId: id };
  if (written.change === 'created') return { action: 'schedule.create', ...of, detail: { version } };
  const fields = diffOf(before, written).fields.map(({ path }) => path);
  return { action: 'schedule.update', ...of, detail: { version, fields: shortened(fields) } };
}

/** A reader does not need more. */
const MAX_FIELDS = 50;

function shortened(fields: readonly string[]): readonly string[] {
  return fields.length <= MAX_FIELDS ? fields : [...fields.slice(0, MAX_FIELDS), '…'];
}

/** For a call that writes many schedules: how many. The versions of each schedule name the caller as well. */
export function noteMany(caller: Caller): Note {
  const auditor = auditorFor(caller);
  return async (tx, written) => {
    const count = { created: 0, updated: 0, unchanged: 0 };
    for (const { change } of written) count[change] += 1;
    const detail = { action: 'put', ...count };
    await auditor.note(tx, { action: 'schedules.bulk', subject: null, scheduleId: null, detail });
  };
}
