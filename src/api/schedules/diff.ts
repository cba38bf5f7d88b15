import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { ChangedSchedule } from '../../operations/schedules/schedule-writes.ts';
import { pointer } from '../../core/json-text.ts';
import { isObject } from '../http/json/json-body.ts';
import { isTree } from '../http/json/merge-patch.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { answerDefinition } from './answers.ts';
import type { Caller } from '../../core/access/roles.ts';
import type { AuditedChange } from '../../core/audit.ts';
import type { ScheduleChangeDeps } from '../../operations/schedules/schedule-changes.ts';
import { auditorFor } from '../../store/audit/audit-rows.ts';

const value = z.unknown().meta({ description: 'Null: there is none. Header values and secrets are masked.' });

export const scheduleDiff = z
  .object({
    id: z.string(),
    change: z.enum(['created', 'updated', 'unchanged']),
    fields: z
      .array(z.object({ path: z.string(), before: value, after: value }))
      .meta({ description: 'The changed fields; `path` is a JSON pointer into the schedule.' }),
  })
  .meta({ id: 'ScheduleDiff', description: 'What a write makes of a schedule.' });

type Diff = z.output<typeof scheduleDiff>;

/** The changes that a write makes of this schedule. */
export function diffOf(before: Schedule | null, { schedule: after, change }: ChangedSchedule): Diff {
  const fields = before === null || change !== 'updated' ? [] : fieldsOf(before.definition, after.definition);
  return { id: after.id, change, fields };
}

function fieldsOf(before: Definition, after: Definition): Diff['fields'] {
  const fields = differences(
    { shown: answerDefinition(before), stored: before },
    { shown: answerDefinition(after), stored: after },
    [],
  );
  if (before.payload === after.payload) return fields;
  const payloads = { before: rawJsonOrNull(before.payload), after: rawJsonOrNull(after.payload) };
  return [...fields, { path: '/payload', ...payloads }];
}

/** A part of a definition, as answers show it and as it is stored. */
interface Part {
  shown: unknown;
  stored: unknown;
}

/** Objects are compared by their members, lists as a whole. */
function differences(before: Part, after: Part, path: readonly string[]): Diff['fields'] {
  if (isTree(before.shown) && isTree(after.shown)) {
    const names = new Set([...Object.keys(before.shown), ...Object.keys(after.shown)]);
    return [...names].flatMap((name) =>
      differences(memberOf(before, name), memberOf(after, name), [...path, name]),
    );
  }
  if (isDeepStrictEqual(before.shown, after.shown)) {
    // Two masks look alike, whatever values they hide.
    if (!isMasked(after.shown) || isDeepStrictEqual(before.stored, after.stored)) return [];
  }
  return [{ path: pointer(path), before: before.shown, after: after.shown }];
}

function isMasked(shown: unknown): boolean {
  return [shown].flat().includes(MASK);
}

function memberOf({ shown, stored }: Part, name: string): Part {
  return { shown: ownOf(shown, name), stored: ownOf(stored, name) };
}

/** An absent field counts as null. */
function ownOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : null;
}

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
