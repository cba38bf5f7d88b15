import type { RunStatus } from './run.ts';

const OPEN = ['waiting', 'pending', 'running'] as const;
const RECORDED = [null] as const;

/**
 * Every way in which the status of a run changes: from any of the first to any of the second, by this function. Null: the run is being
 * recorded. Functions of this folder make a record, which `saveLockedRuns` or `recordRuns` writes; those of `store/` are statements that
 * write the status themselves, and name their row by `stepTo`. docs/concepts.md says when each step is made.
 */
export const STATUS_STEPS = [
  [RECORDED, ['pending', 'waiting', 'skipped'], 'newRun'],
  [RECORDED, ['pending', 'waiting', 'skipped'], 'recordIntentsIfLocked'],
  [RECORDED, ['pending', 'waiting'], 'recordAfterRuns'],
  [['waiting'], ['pending'], 'releaseRun'],
  [['waiting'], ['pending'], 'countDependencies'],
  [['waiting'], ['skipped', 'failed'], 'endRun'],
  [['waiting', 'pending'], ['skipped', 'failed', 'unknown'], 'expireWaiting'],
  [OPEN, ['cancelled', 'abandoned'], 'endRun'],
  [['pending'], ['running', 'succeeded', 'failed', 'unknown'], 'settleAttempt'],
  [['pending'], ['succeeded'], 'settlePlainIfClaimed'],
  [['pending'], ['running'], 'claimPullRuns'],
  [['pending'], ['unknown', 'abandoned'], 'takeOverRun'],
  [['pending', 'waiting'], ['unknown'], 'resumeRun'],
  [['running'], ['pending', 'failed', 'unknown'], 'expireRun'],
  [['pending'], ['failed'], 'expireRun'],
  [['pending'], ['running', 'succeeded', 'failed'], 'applyReport'],
  [['running'], ['succeeded', 'failed'], 'applyReport'],
  [['failed'], ['succeeded'], 'applyReport'],
  [['running'], ['pending'], 'takeBackIfStillLeased'],
  [['pending', 'running', 'unknown'], ['succeeded', 'failed'], 'endAsReported'],
  [['failed', 'unknown', 'abandoned', 'skipped', 'cancelled'], ['pending', 'waiting'], 'reopenRun'],
] as const satisfies [(RunStatus | null)[] | typeof OPEN | typeof RECORDED, RunStatus[], string][];

type StepsOf<Row> = Row extends readonly [readonly (infer From)[], readonly (infer To)[], infer By]
  ? [from: From, to: To, by: By]
  : never;

/** One change of a row, by the function of that row. */
export type StatusStep = StepsOf<(typeof STATUS_STEPS)[number]>;

const ARROWS = new Set(
  STATUS_STEPS.flatMap(([froms, tos]) => froms.flatMap((from) => tos.map((to) => arrow(from, to)))),
);

/** Whether a run may have this status after that one; null: it is being recorded. A record may also be written with the status it has. */
export function mayBecome(from: RunStatus | null, to: RunStatus): boolean {
  return from === to || ARROWS.has(arrow(from, to));
}

function arrow(from: RunStatus | null, to: RunStatus): string {
  return `${from ?? ''} ${to}`;
}
