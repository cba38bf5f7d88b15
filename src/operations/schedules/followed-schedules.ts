/**
 * Guarantees: an `after` schedule follows one that exists, and none follows itself, however far around.
 * Transaction: that of the edit; edits of `after` come one after the other, so that two cannot close a circle together.
 * If the process dies here: nothing of the edit is written.
 */
import { beyondScope } from '../../core/access/scope.ts';
import { followedPrefix } from '../../core/schedules/followed-ids.ts';
import type { After } from '../../core/timing/timing.ts';
import type { Executor } from '../../postgres/executor.ts';
import {
  followedFrom,
  isOfPrefix,
  keepFollowed,
  lockFollowing,
  uidOfPrefix,
} from '../../store/effects/followers.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';
import { type NamingWrite, mayFollow } from './names-in-scope.ts';

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
export async function resolveFollowed(tx: Executor, naming: readonly NamingWrite[]): Promise<void> {
  const writes = naming.map(({ write }) => write);
  const parents = await parentsOf(tx, naming);
  const faults: { scheduleId: string; message: string }[] = [];
  for (const one of naming) {
    const { write } = one;
    const { after } = write.definition;
    write.afterUid = after === null || !mayFollow(one) ? null : (followedAsUid(after, parents) ?? null);
    if (after !== null && write.afterUid === null)
      faults.push({ scheduleId: write.id, message: faultOf(after, one) });
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
