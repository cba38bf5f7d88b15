import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Caller } from '../../core/access/roles.ts';
import { CronError } from '../../core/cron/cron.ts';
import type { CannotFollow } from '../../operations/schedules/check-names.ts';
import type { UnknownName } from '../../operations/references.ts';
import {
  type ScheduleChangeDeps,
  changeSchedules,
  tryToChangeSchedules,
} from '../../operations/schedules/schedule-changes.ts';
import type { ChangedSchedule, ScheduleChange } from '../../operations/schedules/schedule-writes.ts';
import type { ApiDeps } from '../deps.ts';
import type { AcceptedWrite } from './inputs.ts';
import { withNextFires } from './shown-schedules.ts';
import { type Fault, invalid, unforeseen } from '../http/problem.ts';
import { type Scope, beyondScope, owns, sees } from '../../core/access/scope.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import { pointer } from '../../core/json-text.ts';
import { isObject } from '../http/json/json-body.ts';
import { isTree, rawJsonOrNull } from '../http/json/raw-json.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { answerDefinition } from './answers.ts';
import type { AuditedChange } from '../../core/audit.ts';
import { auditorFor } from '../../store/audit/audit-rows.ts';

/** Impossible values and names of things that do not exist are refused together, so that one answer names every fault. */
export async function changeOne(
  deps: ApiDeps,
  { caller, ...named }: Pick<ScheduleChange, 'id' | 'calendars'> & { caller: Caller },
  decide: (...given: Parameters<ScheduleChange['decide']>) => AcceptedWrite,
) {
  let impossible: readonly Fault[] = [];
  const decideOnly: ScheduleChange['decide'] = (...given) => {
    const accepted = decide(...given);
    const [current] = given;
    impossible = [...accepted.impossible, ...queueFaults(accepted.definition, current, caller.scope)];
    return accepted.definition;
  };
  const change = { ...named, by: caller.name, scope: caller.scope, decide: decideOnly };
  const [changed] = await changeOrRefuse(
    { ...deps, note: noteOne(caller) },
    [change],
    () => '',
    () => impossible,
  );
  if (!changed) throw new Error(`the change of schedule ${named.id} was not answered`);
  const [shown = changed.schedule] = await withNextFires(deps.database, [changed.schedule]);
  return { ...changed, schedule: shown };
}

/**
 * Reports a schedule that cannot follow another at the place in the body that names the other; `pathOf` gives the place
 * of a definition. Reports the faults in `impossible` together with it. A dry run is refused in the same way, and
 * changes nothing. @throws Problem 422
 */
export async function changeOrRefuse(
  deps: ScheduleChangeDeps,
  changes: readonly ScheduleChange[],
  pathOf: (scheduleId: string) => string,
  impossible: () => readonly Fault[] = () => [],
  dryRun = false,
): Promise<ChangedSchedule[]> {
  const refuse = (cannotFollow: CannotFollow | null, unknown: readonly UnknownName<{ id: string }>[]) => {
    const following = (cannotFollow?.faults ?? []).map(({ scheduleId, message }) => ({
      path: `${pathOf(scheduleId)}/after/scheduleId`,
      message,
    }));
    const names = unknown.map(({ namer, path, message }) => ({ path: pathOf(namer.id) + path, message }));
    const faults = [...impossible(), ...following, ...names];
    if (faults.length > 0) throw invalid(faults, 422);
  };
  try {
    const change = dryRun ? tryToChangeSchedules : changeSchedules;
    return await change(
      deps,
      changes.map((change) => ({ ...change, decide: outsideOfTheDatabase(change.decide) })),
      refuse,
    );
  } catch (error) {
    // An older version accepted the stored expression. The call does not name it, but enables the schedule again.
    if (error instanceof CronError) throw invalid([{ path: '/cron', message: error.message }], 422);
    throw error;
  }
}

/** An error of a decision happens in the middle of a transaction, and has nothing to do with that transaction. */
function outsideOfTheDatabase(decide: ScheduleChange['decide']): ScheduleChange['decide'] {
  return (...given) => {
    try {
      return decide(...given);
    } catch (error) {
      throw error instanceof TypeError || error instanceof RangeError ? unforeseen(error) : error;
    }
  };
}

/** Items of a batch that a caller of this scope may not write. Whether there are such schedules, this does not ask. */
export function foreignItems(items: readonly { id: string }[], scope: Scope): Fault[] {
  return items.flatMap(({ id }, index) =>
    owns(scope, id) ? [] : [{ path: `/items/${index}/id`, message: beyondScope(scope) }],
  );
}

/** A queue needs no entry to be named: so what the caller does not see is no unknown one, but one of others. */
export function queueFaults({ target }: Definition, current: Schedule | null, scope: Scope): Fault[] {
  if (target.type !== 'pull' || sees(scope, target.queue)) return [];
  const before = current?.definition.target;
  if (before?.type === 'pull' && before.queue === target.queue) return [];
  return [{ path: '/target/queue', message: beyondScope(scope) }];
}

const value = z.unknown().describe('Null: there is none. Header values and secrets are masked.');

export const scheduleDiff = z
  .object({
    id: z.string(),
    change: z.enum(['created', 'updated', 'unchanged']),
    fields: z
      .array(z.object({ path: z.string(), before: value, after: value }))
      .describe('The changed fields; `path` is a JSON pointer into the schedule.'),
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
    return [...names].flatMap((name) => differences(memberOf(before, name), memberOf(after, name), [...path, name]));
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
function noteOne(caller: Caller): Note {
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
