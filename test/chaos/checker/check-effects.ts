import { nameOf } from './check-plan.ts';
import type { History, RunRow } from './history.ts';
import { type Timeline, grouped, isOfCommands, spanOf } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

/** Clocks of instances may be a little ahead of the database's when they tell when a run ended. */
const CLOCKS_MS = 50;

/** Each run stands in one table, and each end had what follows from it: once, and not before it. */
export function checkEffects({ dump }: History, timelines: Map<string, Timeline>, report: Report): void {
  for (const [id, rows] of grouped(dump.runs, (run) => run.id)) {
    if (rows.length > 1)
      report.add('tables', `${id} stands in ${rows.map(({ table }) => table).join(' and ')}`);
  }
  for (const run of dump.runs) {
    if ((run.finishedAt !== null) !== (run.table === 'history'))
      report.add('tables', `${nameOf(run)} is ${run.status}, and stands in ${run.table}`);
  }
  for (const { kind, runId, failures, error } of dump.effects) {
    report.add(
      'effects',
      `${kind} of ${runId} was never done; failed ${failures} times: ${error ?? 'no reason'}`,
    );
  }
  checkFollowers(dump, timelines, report);
}

function checkFollowers(
  { runs, followers }: History['dump'],
  timelines: Map<string, Timeline>,
  report: Report,
): void {
  const byParent = grouped(followers, ({ parentRunId }) => parentRunId);
  const known = new Map(runs.map((run) => [run.id, run]));
  for (const parentId of byParent.keys()) {
    if (!known.has(parentId)) report.add('effects', `a run follows ${parentId}, which there is not`);
  }
  for (const run of runs) {
    const following = byParent.get(run.id) ?? [];
    const least = isFollowed(run) ? 1 : 0;
    const most = mayEndAgain(run, timelines.get(run.scheduleUid)) ? 2 : least;
    if (following.length < least || following.length > most)
      report.add('effects', `${nameOf(run)} is ${run.status}, and ${following.length} runs follow it`);
    for (const { createdAt } of following) {
      if (run.endedAt !== null && run.endedAt !== undefined && createdAt < run.endedAt - CLOCKS_MS)
        report.add(
          'effects',
          `${nameOf(run)} ended at ${isoText(run.endedAt)}, followed at ${isoText(createdAt)}`,
        );
    }
  }
}

/** Its lease ran out, and then its worker reported after all: one that ended as unknown takes that, as another end. */
function mayEndAgain(run: RunRow, timeline: Timeline | undefined): boolean {
  const isAtMostOnce = spanOf(timeline, run)?.definition.delivery === 'atMostOnce';
  return isAtMostOnce && isOfCommands(timeline) && ['succeeded', 'failed'].includes(run.status);
}

function isFollowed({ finishedAt }: RunRow): boolean {
  return finishedAt !== null;
}
