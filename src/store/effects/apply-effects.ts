import type { EffectKind } from '../../core/runs/effect.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type JudgedOverlaps, judgeOverlapsUnderLock } from '../runs/overlaps.ts';
import { lockFreeSchedules } from '../schedules/search/lock-free-schedules.ts';
import { lookAgainAtLate } from '../schedules/watches/late-looks.ts';
import { recordAfterRuns } from './after-runs.ts';
import { countDependencies } from './dependents.ts';
import { type Effect, deleteEffects } from './effect-rows.ts';
import { writeOverlapEffects } from './insert-effects.ts';

export interface AppliedEffects {
  /** Done, and deleted. */
  done: readonly Effect[];
  /** Another transaction has locked a row that one of these needs, or there is more of it to do: try again. */
  unfinished: readonly Effect[];
  /** There is more to do for an effect that has begun. */
  isMore: boolean;
  /**
   * The caller handles these outside of the transaction. A `cancel` is deleted here: firelock calls its target at most
   * once.
   */
  cancels: readonly Effect[];
  /** Effects that may pause a schedule. */
  toPause: readonly Effect[];
  judged: JudgedOverlaps;
  /** Schedules that were looked at for overlap. */
  schedules: number;
  /** Runs that failed, since one they depend on did not succeed. */
  failed: readonly string[];
  toClaim: number;
  toPull: boolean;
  toAdmit: boolean;
  /** Effects that these effects have written. */
  effects: number;
}

/** Does these effects, and deletes those that are done: all in this transaction. */
export async function applyEffects(tx: Transaction, effects: readonly Effect[]): Promise<AppliedEffects> {
  const of = (kind: EffectKind) => effects.filter((effect) => effect.kind === kind);
  const counted = await countDependencies(tx, of('dependents'));
  const followed = await recordAfterRuns(tx, of('followers'));
  const toJudge = of('overlap');
  const { free, held } = await lockFreeSchedules(tx, [
    ...new Set(toJudge.map(({ scheduleUid }) => scheduleUid)),
  ]);
  const uids = [...new Set([...free, ...followed.toJudge])];
  const judged = await judgeOverlapsUnderLock(tx, uids);
  const heldSchedules = new Set([...held, ...judged.again]);
  const unfinished = [
    ...of('dependents').filter(({ runId }) => counted.unfinished.has(runId)),
    ...followed.passedOver,
    ...(await lookAgain(tx, of('recovered'))),
    ...toJudge.filter(({ scheduleUid }) => heldSchedules.has(scheduleUid)),
  ];
  // Of these no effect is left that could be tried again.
  const left = judged.again.filter((uid) => !free.includes(uid));
  const soon = await writeOverlapEffects(tx, left);
  const toPause = [...of('gone'), ...of('failing')];
  const staying = new Set([...unfinished, ...toPause]);
  const done = effects.filter((effect) => !staying.has(effect));
  const ids = done.map(({ id }) => id);
  await deleteEffects(tx, ids);
  return {
    done,
    unfinished,
    isMore: counted.isMore || judged.isMore,
    cancels: of('cancel'),
    toPause,
    judged,
    schedules: uids.length,
    failed: counted.failed,
    toClaim: counted.toClaim + followed.toClaim + judged.started,
    toPull: counted.toPull || followed.toPull || judged.toPull,
    toAdmit: counted.toAdmit || followed.toAdmit || judged.toAdmit,
    effects: counted.effects + followed.effects + judged.effects + soon,
  };
}

/** Has the late watch look for these successes now. Answers those whose watch another transaction judges or edits at this moment. */
async function lookAgain(tx: Transaction, recovered: readonly Effect[]): Promise<readonly Effect[]> {
  const uids = recovered.map(({ scheduleUid }) => scheduleUid);
  const held = new Set(await lookAgainAtLate(tx, uids));
  return recovered.filter(({ scheduleUid }) => held.has(scheduleUid));
}
