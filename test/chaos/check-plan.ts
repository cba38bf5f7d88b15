import type { History, RunRow } from './history.ts';
import { type Timeline, grouped } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

const PLANNED = new Set(['schedule', 'catchUp', 'backfill']);
/** What is due so shortly before the dump may not be planned yet, where a schedule was left enabled. */
const PLANNED_WITHIN_MS = 10_000;
/** A plan is decided a little before its rows are written. */
const WRITTEN_WITHIN_MS = 30_000;

/** Each due occurrence has one run, of the right version, or is folded into one that was caught up with. */
export function checkPlan(history: History, timelines: Map<string, Timeline>, report: Report): void {
  const runs = grouped(history.dump.runs, (run) => run.scheduleUid);
  for (const [uid, timeline] of timelines) checkSchedule(history, timeline, runs.get(uid) ?? [], report);
  for (const run of history.dump.runs) {
    if (!PLANNED.has(run.trigger)) report.add('phantom', `${nameOf(run)} has the trigger ${run.trigger}`);
    if (!timelines.has(run.scheduleUid)) report.add('phantom', `${nameOf(run)} is of no known schedule`);
  }
}

function checkSchedule(history: History, timeline: Timeline, runs: RunRow[], report: Report): void {
  const byTime = grouped(runs, (run) => run.scheduledFor);
  for (const [scheduledFor, twins] of byTime) {
    const [run] = twins;
    if (!run) continue;
    if (twins.length > 1) {
      report.add('plannedTwice', `${nameOf(run)}: ${twins.map(({ id }) => id).join(', ')}`);
    }
    const span = timeline.expected.get(scheduledFor);
    if (!span) report.add('phantom', `${nameOf(run)} was planned, and was not due`);
    else if (span.version !== run.scheduleVersion) {
      report.add(
        'phantom',
        `${nameOf(run)} has version ${run.scheduleVersion}; in force was ${span.version}`,
      );
    }
    if (run.createdAt < scheduledFor)
      report.add('early', `${nameOf(run)} was planned at ${isoText(run.createdAt)}`);
    const lateBy = run.createdAt - scheduledFor;
    const graceMs = history.settings.graceSeconds * 1000;
    if (run.trigger === 'catchUp' ? lateBy <= graceMs : lateBy > graceMs + WRITTEN_WITHIN_MS) {
      report.add('wrongEnd', `${nameOf(run)} was planned ${lateBy} ms late, as ${run.trigger}`);
    }
  }
  for (const at of timeline.expected.keys()) {
    if (byTime.has(at) || at > history.dump.at - PLANNED_WITHIN_MS) continue;
    if (!isFolded(at, runs, history.settings.graceSeconds)) {
      report.add('lost', `${runs[0]?.scheduleId ?? 'a schedule'}@${isoText(at)} has no run`);
    }
  }
  for (const run of runs) checkCount(run, timeline, byTime, report);
}

/** Missed, and told to be: it lies in what a run stands for, and was too late when that was planned. */
function isFolded(at: number, runs: readonly RunRow[], graceSeconds: number): boolean {
  return runs.some(
    (run) =>
      run.coalescedFrom !== null &&
      run.coalescedFrom <= at &&
      at < run.scheduledFor &&
      run.createdAt - at > graceSeconds * 1000,
  );
}

function checkCount(run: RunRow, timeline: Timeline, byTime: Map<number, RunRow[]>, report: Report): void {
  const { coalesced, coalescedFrom, scheduledFor } = run;
  const folded =
    coalescedFrom === null
      ? 0
      : [...timeline.expected.keys()].filter(
          (at) => at >= coalescedFrom && at < scheduledFor && !byTime.has(at),
        ).length;
  if (folded !== coalesced) {
    report.add('conservation', `${nameOf(run)} says it stands for ${coalesced} others; those are ${folded}`);
  }
}

export function nameOf(run: Pick<RunRow, 'id' | 'scheduleId' | 'scheduledFor'>): string {
  return `${run.scheduleId}@${isoText(run.scheduledFor)} (${run.id})`;
}
