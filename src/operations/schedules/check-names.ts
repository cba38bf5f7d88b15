/**
 * Guarantees: the limit, the connection and the schedule that an edit names are there, and stay until it is written; no schedule follows
 *   itself, however far around. A caller with a scope cannot name what the scope does not show. What a schedule names already, it may
 *   go on naming: a caller with a wider scope may have written it.
 * Transaction: that of the edit; edits of `after` come one after the other, so that two cannot close a circle together.
 * If the process dies here: nothing of the edit is written.
 */
import { beyondScope, type Scope, sees } from '../../core/access/scope.ts';
import { type After, followedPrefix, calendarIdsOf } from '../../core/timing/timing.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { followedFrom, isOfPrefix, keepFollowed, lockFollowing, uidOfPrefix } from '../../store/effects/followers.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';
import { heldFields, type UnknownName, unknownNamesOf } from '../references.ts';
import type { Definition, Schedule } from '../../core/schedules/schedule.ts';
import type { KnownCalendars } from '../../store/calendars/calendar-histories.ts';

/** What `after` names cannot be followed. */
export class CannotFollow extends Error {
  override readonly name = 'CannotFollow';
  readonly faults: readonly { scheduleId: string; message: string }[];

  constructor(faults: CannotFollow['faults']) {
    super(faults.map(({ scheduleId, message }) => `${scheduleId}: ${message}`).join('; '));
    this.faults = faults;
  }
}

/** Finds the uids of the schedules that these follow, and writes them into `afterUid`. @throws CannotFollow */
async function resolveFollowed(tx: Executor, naming: readonly NamingWrite[]): Promise<void> {
  const writes = naming.map(({ write }) => write);
  const parents = await parentsOf(tx, naming);
  const faults: { scheduleId: string; message: string }[] = [];
  for (const one of naming) {
    const { write } = one;
    const { after } = write.definition;
    write.afterUid = after === null || !mayFollow(one) ? null : (followedAsUid(after, parents) ?? null);
    if (after !== null && write.afterUid === null) faults.push({ scheduleId: write.id, message: faultOf(after, one) });
  }
  if (faults.length === 0) faults.push(...(await circlesOf(tx, writes)));
  if (faults.length > 0) throw new CannotFollow(faults);
}

function followedAsUid({ scheduleId }: After, parents: ReadonlyMap<string, string>): string | undefined {
  const prefix = followedPrefix(scheduleId);
  return prefix === null ? parents.get(scheduleId) : uidOfPrefix(prefix);
}

function faultOf({ scheduleId }: After, { scope }: NamingWrite): string {
  return followedPrefix(scheduleId) === null
    ? `names a schedule that does not exist: ${scheduleId}`
    : beyondScope(scope);
}

/** In the call itself, or stored already. */
async function parentsOf(tx: Executor, naming: readonly NamingWrite[]): Promise<Map<string, string>> {
  const following = naming.filter(({ write }) => write.definition.after !== null);
  if (following.length === 0) return new Map();
  await lockFollowing(tx);
  const named = following.filter(mayFollow).map(({ write }) => write.definition.after?.scheduleId ?? '');
  const stored = await keepFollowed(tx, [...new Set(named)]);
  return new Map([...stored, ...naming.map(({ write: { id, uid } }) => [id, uid] as const)]);
}

async function circlesOf(
  tx: Executor,
  writes: readonly ScheduleWrite[],
): Promise<{ scheduleId: string; message: string }[]> {
  const written = new Map(writes.map(({ uid, afterUid }) => [uid, afterUid]));
  const stored = writes.flatMap(({ afterUid }) =>
    afterUid === null || written.has(afterUid) || isOfPrefix(afterUid) ? [] : [afterUid],
  );
  const following = new Map([...(await followedFrom(tx, [...new Set(stored)])), ...written]);
  const faults: { scheduleId: string; message: string }[] = [];
  /** From here up, there is no cycle. */
  const straight = new Set<string | null>([null]);
  const isStraight = (above: string | null) => straight.has(above) || (above !== null && isOfPrefix(above));
  for (const { uid, id, afterUid, definition } of writes) {
    let above = afterUid;
    const passed = new Set<string>();
    while (above !== null && !isStraight(above) && above !== uid && !passed.has(above)) {
      passed.add(above);
      above = following.get(above) ?? null;
    }
    if (above === uid) {
      const parent = definition.after?.scheduleId ?? '';
      faults.push({
        scheduleId: id,
        message: `makes a cycle: ${parent} follows this schedule, directly or through others`,
      });
    } else if (isStraight(above)) {
      for (const one of [uid, ...passed]) straight.add(one);
    }
  }
  return faults;
}

export type CheckNames = (cannotFollow: CannotFollow | null, unknown: readonly UnknownName<{ id: string }>[]) => void;

/** @throws CannotFollow, Error where a limit or a connection does not exist, or a held field is changed, and whatever `check` throws */
export async function checkNames(tx: Transaction, writes: readonly NamingWrite[], check: CheckNames): Promise<void> {
  // All are of one caller.
  const scope = writes[0]?.scope ?? null;
  const namingOf = ({ write }: NamingWrite) => write.definition;
  const found = await unknownNamesOf(tx, writes, namingOf, scope, ({ before }) => before);
  const held = writes.flatMap(({ write, before }) =>
    heldFields(write.definition.target, before?.target ?? null, scope).map(({ field, message }) => ({
      ...{ namer: write, path: `/target/${field}`, message },
    })),
  );
  const unknown = [...found.map(({ namer, ...rest }) => ({ ...rest, namer: namer.write })), ...held];
  await resolveFollowed(tx, writes).catch((error: unknown) => {
    if (error instanceof CannotFollow) check(error, unknown);
    throw error;
  });
  check(null, unknown);
  const [first] = unknown;
  if (first) throw new Error(`schedule ${first.namer.id} ${first.message}`);
}

/** A write of a caller. */
export interface NamingWrite {
  write: ScheduleWrite;
  /** The schedule as it was; null: it is new. */
  before: Definition | null;
  scope: Scope;
}

/** Whether it may follow the schedules that it follows: the one that it names, or all of a prefix. */
function mayFollow({ write, before, scope }: NamingWrite): boolean {
  const followed = write.definition.after?.scheduleId;
  if (followed === undefined || before?.after?.scheduleId === followed) return true;
  const prefix = followedPrefix(followed);
  return sees(scope, prefix ?? followed);
}

/** The calendars as they are to a caller of this scope: what it asks for and may not name in this schedule is one that there is not. */
export function calendarsFor(
  { scope, calendars: asked = [] }: { scope: Scope; calendars?: readonly string[] },
  current: Schedule | null,
  known: KnownCalendars,
): KnownCalendars {
  const named = current === null ? [] : calendarIdsOf(current.definition);
  const unseen = asked.filter((id) => !sees(scope, id) && !named.includes(id));
  if (unseen.length === 0) return known;
  const histories = new Map(known.histories);
  const editions = new Map(known.editions);
  for (const id of unseen) {
    histories.set(id, { id, versions: [] });
    editions.delete(id);
  }
  return { ...known, histories, editions };
}
