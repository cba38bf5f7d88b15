import { FAILING_ENDS } from '../run-end.ts';
import { type RunStatus, isOfSchedule } from './run.ts';
import type { RunRecord } from './run-record.ts';

/**
 * What may follow from the end of a run. Each effect is a row of its own, written in the commit of the end:
 * `followers`: schedules that fire after this one get a run · `dependents`: runs that depend on it are counted down ·
 * `overlap`: another run of its schedule may start · `cancel`: firelock calls its target, since it was cancelled ·
 * `gone`: its target answered 410, so its schedule is paused · `failing`: it did not succeed, and its schedule is
 * paused after enough failures · `breaks`, `heals`: an episode of
 * its schedule opens, or is over · `undelivered`: it is a notifier's message, and did not succeed ·
 * `reopens`: it was opened again, and so are the runs that failed for want of it. `followers` is also
 * written for a schedule that is late, and `breaks` and `heals` for what is about no run.
 */
export type EffectKind =
  | 'followers'
  | 'dependents'
  | 'reopens'
  | 'overlap'
  | 'cancel'
  | 'gone'
  | 'failing'
  | 'breaks'
  | 'heals'
  | 'undelivered';

/** Those about episodes and who is told of them. However many there are, no follower and no dependent waits behind them. */
export const ALERT_EFFECTS = ['breaks', 'heals', 'undelivered'] as const satisfies readonly EffectKind[];

/** The kinds of episodes that a success may end; `missed`: one of a run that catches up. */
export const ENDED_BY_SUCCESS = ['failed', 'late', 'missed'] as const;

/** `alertKind`: of `breaks` and `heals`, the kind of the episode. */
export interface EffectOfEnd {
  kind: EffectKind;
  alertKind?: (typeof ENDED_BY_SUCCESS)[number] | undefined;
}

/**
 * What follows from the end of a run that had this status before (null: none), judged by its record alone; `writeEffects` also
 * asks the database: whether a schedule follows, whether an episode is open.
 * `settlePlainIfClaimed` says the same of successes; a test compares them.
 */
export function effectsOfEnd(run: RunRecord, before: RunStatus | null): EffectOfEnd[] {
  const { trigger, status, reason } = run;
  const hasFailed = FAILING_ENDS.includes(status);
  // Of a schedule that is gone there is nothing to tell.
  const isTold = isOfSchedule(run) && reason !== 'deleted';
  const isHealing = isTold && status === 'succeeded';
  const table: [follows: boolean, kind: EffectKind, alertKind?: EffectOfEnd['alertKind']][] = [
    [isOfSchedule(run), 'followers'],
    [run.hasDependents, 'dependents'],
    [run.overlapGuarded, 'overlap'],
    [before === 'running' && status === 'cancelled' && !run.observed, 'cancel'],
    [run.outcomeWatched && hasFailed, 'failing'],
    [trigger === 'notify' && (hasFailed || reason === 'request'), 'undelivered'],
    [isTold && hasFailed, 'breaks', 'failed'],
    [isHealing, 'heals', 'failed'],
    [isHealing, 'heals', 'late'],
    [isHealing && trigger === 'catchUp', 'heals', 'missed'],
  ];
  return table.flatMap(([follows, kind, alertKind]) => (follows ? { kind, alertKind } : []));
}

/**
 * What becomes of the open runs of a schedule, if they are too many for one transaction. `deleted`: their schedule was, and they are
 * abandoned · `replaced`: a newer run of it started, and those before it are cancelled · `marked`: it was edited, and from now on they
 * count for `overlap`, `pauseAfterFailures` or `successWithinSeconds`.
 */
export type BacklogKind = 'deleted' | 'replaced' | 'marked';
