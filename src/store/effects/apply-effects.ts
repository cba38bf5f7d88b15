import type { ScopeShares } from '../../core/access/scope.ts';
import type { EffectKind } from '../../core/runs/effect.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { allWork, type Work } from '../../runtime/loop/wake.ts';
import { type AppliedCauses, applyCauses } from '../alerts/apply-causes.ts';
import { passOnUndelivered } from '../alerts/undelivered.ts';
import type { ReadyRun } from '../runs/claims/claim-if-ready.ts';
import { type JudgedOverlaps, judgeOverlapsUnderLock, workOf } from '../runs/overlaps.ts';
import { workOfChanges } from '../runs/lock-and-save.ts';
import { lockFreeSchedules } from '../schedules/search/find-schedules.ts';
import { recordAfterRuns } from './after-runs.ts';
import { countDependencies, MAX_EDGES } from './dependents.ts';
import { deleteEffects, type Effect, moveBehind } from './effect-rows.ts';
import { writeOverlapEffects } from './insert-effects.ts';
import { reopenDependents } from './reopen-dependents.ts';

export interface AppliedEffects extends Required<Work> {
  /** Done, and deleted. */
  done: readonly Effect[];
  /** Another transaction has locked a row that one of these needs: try again. */
  unfinished: readonly Effect[];
  /** Nothing of these is done yet, since it would have been too much: they come next. */
  later: readonly Effect[];
  /** Done in part: later transactions go on with them. */
  begun: readonly Effect[];
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
  /** Runs that were opened again with one that they depend on. */
  reopened: readonly string[];
  /** Followers that are ready to be sent; `toClaim` counts other runs. */
  toSend: readonly ReadyRun[];
  /** Episodes that were opened and closed. */
  alerts: Pick<AppliedCauses, 'opened' | 'closed'>;
}

interface ApplyingDeps {
  /** In whose lanes runs of followers wait. */
  scopeShares?: ScopeShares;
  /** Where the dashboard is; null: messages have no links. */
  publicUrl: string | null;
}

/**
 * Does these effects, and deletes those that are done: all in this transaction. What would be too much for one transaction is done in
 * part, and the rest of it by later ones.
 */
// oxlint-disable-next-line max-lines-per-function -- a line for each kind
export async function applyEffects(
  tx: Transaction,
  effects: readonly Effect[],
  { scopeShares, publicUrl }: ApplyingDeps,
): Promise<AppliedEffects> {
  const of = (kind: EffectKind) => effects.filter((effect) => effect.kind === kind);
  const counted = await countEnds(tx, of('dependents'));
  const followed = await recordAfterRuns(tx, of('followers'), scopeShares);
  const overlaps = await judgeAgain(tx, of('overlap'), followed.toJudge);
  const causes = [...of('breaks'), ...of('heals')];
  const alerts = await applyCauses(tx, { effects: causes }, publicUrl);
  const passedOn = await passOnUndelivered(tx, of('undelivered'), publicUrl);
  const reopened = await reopenDependents(tx, of('reopens'));
  const opened = workOfChanges(
    reopened.changes.filter(({ to }) => to.status === 'pending'),
    reopened.effects,
  );
  const { judged } = overlaps;
  const told: Work = {
    effects: alerts.effects,
    toClaim: alerts.messages.toSend + passedOn.messages.toSend,
    messages: alerts.messages.gathering + passedOn.messages.gathering,
  };
  const begun = [...counted.begun, ...followed.begun, ...overlaps.begun, ...passedOn.begun, ...reopened.begun];
  const later = [...causes.filter(({ scheduleUid }) => alerts.later.has(scheduleUid)), ...reopened.later];
  await moveBehind(tx, begun);
  const unfinished = [
    ...counted.unfinished,
    ...followed.passedOver,
    ...overlaps.unfinished,
    ...causes.filter(({ scheduleUid }) => alerts.waiting.has(scheduleUid)),
    ...passedOn.unfinished,
    ...reopened.unfinished,
  ];
  const toPause = [...of('gone'), ...of('failing')];
  const staying = new Set([...unfinished, ...begun, ...later, ...toPause].map(({ id }) => id));
  const done = effects.filter(({ id }) => !staying.has(id));
  const ids = done.map(({ id }) => id);
  await deleteEffects(tx, ids);
  return {
    done,
    unfinished,
    later,
    begun,
    cancels: of('cancel'),
    toPause,
    judged,
    schedules: overlaps.schedules,
    failed: counted.failed,
    reopened: reopened.changes.map(({ to }) => to.id),
    toSend: followed.toSend,
    ...allWork([counted, followed, workOf(judged), overlaps, told, opened]),
    alerts,
  };
}

/** Each of them gets the same share, so that one with few dependents is done at once. */
async function countEnds(tx: Transaction, ends: readonly Effect[]) {
  const counted = await countDependencies(tx, ends, Math.ceil(MAX_EDGES / Math.max(1, ends.length)));
  const isBegun = ({ runId }: Effect) => counted.begun.has(runId);
  return {
    ...counted,
    begun: ends.filter(isBegun).map((end) => ({ ...end, doneThrough: end.runId })),
    unfinished: ends.filter((end) => counted.unfinished.has(end.runId) && !isBegun(end)),
  };
}

/** Judges the schedules of these effects, and others whose rows are locked. */
async function judgeAgain(tx: Transaction, toJudge: readonly Effect[], lockedUids: readonly string[]) {
  const { free, locked } = await lockFreeSchedules(tx, [...new Set(toJudge.map(({ scheduleUid }) => scheduleUid))]);
  const uids = [...new Set([...free, ...lockedUids])];
  const judged = await judgeOverlapsUnderLock(tx, uids);
  const again = toJudge.filter(({ scheduleUid }) => judged.again.includes(scheduleUid));
  const passedOver = toJudge.filter(({ scheduleUid }) => locked.includes(scheduleUid));
  // These have no effect yet that could be tried again: one is written.
  const left = judged.again.filter((uid) => !free.includes(uid));
  return {
    judged,
    schedules: uids.length,
    begun: judged.isMore ? again.map((effect) => ({ ...effect, doneThrough: effect.scheduleUid })) : [],
    unfinished: judged.isMore ? passedOver : [...passedOver, ...again],
    effects: await writeOverlapEffects(tx, left),
  };
}
