/**
 * Guarantees: an `after` schedule follows one that exists, and none follows itself, however far around.
 * Transaction: that of the edit; edits of `after` come one after the other, so that two cannot close a circle together.
 * If the process dies here: nothing of the edit is written.
 */
import type { Executor } from '../../postgres/executor.ts';
import { ALL_SCHEDULES, followedUid, keepFollowed, lockFollowing } from '../../store/effects/followers.ts';
import type { ScheduleWrite } from '../../store/schedules/write-schedules.ts';

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
export async function resolveFollowed(tx: Executor, writes: readonly ScheduleWrite[]): Promise<void> {
  const parents = await parentsOf(tx, writes);
  const faults: { scheduleId: string; message: string }[] = [];
  for (const write of writes) {
    const { after } = write.definition;
    if (after === null) write.afterUid = null;
    else if (after.scheduleId === '*') write.afterUid = ALL_SCHEDULES;
    else {
      const uid = parents.get(after.scheduleId);
      if (uid !== undefined) write.afterUid = uid;
      else
        faults.push({
          scheduleId: write.id,
          message: `names a schedule that does not exist: ${after.scheduleId}`,
        });
    }
  }
  if (faults.length === 0) faults.push(...(await circlesOf(tx, writes)));
  if (faults.length > 0) throw new CannotFollow(faults);
}

/** In the call itself, or stored already. */
async function parentsOf(tx: Executor, writes: readonly ScheduleWrite[]): Promise<Map<string, string>> {
  const named = writes.flatMap(({ definition: { after } }) => (after === null ? [] : [after.scheduleId]));
  if (named.length === 0) return new Map();
  await lockFollowing(tx);
  const stored = await keepFollowed(tx, [...new Set(named)]);
  return new Map([...stored, ...writes.map(({ id, uid }) => [id, uid] as const)]);
}

async function circlesOf(
  tx: Executor,
  writes: readonly ScheduleWrite[],
): Promise<{ scheduleId: string; message: string }[]> {
  const following = new Map<string, string | null>(writes.map(({ uid, afterUid }) => [uid, afterUid]));
  const faults: { scheduleId: string; message: string }[] = [];
  /** From here up, there is no cycle. */
  const straight = new Set<string | null>([null, ALL_SCHEDULES]);
  for (const { uid, id, afterUid, definition } of writes) {
    let above = afterUid;
    const passed = new Set<string>();
    while (above !== null && !straight.has(above) && above !== uid && !passed.has(above)) {
      passed.add(above);
      let next = following.get(above);
      if (next === undefined) {
        next = await followedUid(tx, above);
        following.set(above, next);
      }
      above = next;
    }
    if (above === uid) {
      const parent = definition.after?.scheduleId ?? '';
      faults.push({
        scheduleId: id,
        message: `makes a cycle: ${parent} follows this schedule, directly or through others`,
      });
    } else if (straight.has(above)) {
      for (const one of [uid, ...passed]) straight.add(one);
    }
  }
  return faults;
}
