import type { History, RunRow } from './history.ts';
import { type Span, type Timeline, grouped, spanOf } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

const PLANNED = new Set(['schedule', 'catchUp', 'backfill']);
/** What is due so shortly before the dump may not be planned yet, where a schedule was left enabled. */
const PLANNED_WITHIN_MS = 10_000;
/** A plan is decided a little before its rows are written. */
const WRITTEN_WITHIN_MS = 30_000;

/** Each due occurrence has one run, of the right version, or is told to have been missed; each fire by hand has its run. */
export function checkPlan(history: History, timelines: Map<string, Timeline>, report: Report): void {
  const planned = history.dump.runs.filter(({ trigger }) => PLANNED.has(trigger));
  const runs = grouped(planned, (run) => run.scheduleUid);
  for (const [uid, timeline] of timelines) checkSchedule(history, timeline, runs.get(uid) ?? [], report);
  for (const run of history.dump.runs) {
    if (!PLANNED.has(run.trigger) && run.trigger !== 'manual') {
      report.add('phantom', `${nameOf(run)} has the trigger ${run.trigger}`);
    }
    if (!timelines.has(run.scheduleUid)) report.add('phantom', `${nameOf(run)} is of no known schedule`);
  }
  checkFiredByHand(history, report);
}

/** A key stands for one run: for exactly one where the call was answered so. */
function checkFiredByHand({ fires, dump }: History, report: Report): void {
  const byKey = grouped(
    dump.runs.filter(({ trigger }) => trigger === 'manual'),
    ({ key }) => key,
  );
  for (const { scheduleId, key, outcome, endedAt } of fires) {
    const runs = byKey.get(key) ?? [];
    byKey.delete(key);
    const text = `the fire of ${scheduleId} by hand with the key ${key}`;
    if (outcome === 'acked' && runs.length === 0) {
      report.add('lost', `${text}, acknowledged at ${isoText(endedAt)}, has no run`);
    }
    if (outcome === 'refused' && runs.length > 0) report.add('phantom', `${text} was refused, and has a run`);
    if (runs.length > 1) report.add('plannedTwice', `${text} has ${runs.length} runs`);
    for (const run of runs) if (run.scheduleId !== scheduleId) report.add('phantom', `${text}: ${nameOf(run)}`);
  }
  for (const [key, runs] of byKey) {
    for (const run of runs) report.add('phantom', `${nameOf(run)} has the key ${key ?? 'null'}, which no schedule has`);
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
    checkVersion(run, spansAt(timeline, scheduledFor), report);
    checkMoment(run, spanOf(timeline, run), report);
  }
  for (const at of timeline.expected.keys()) {
    if (byTime.has(at) || at > history.dump.at - PLANNED_WITHIN_MS) continue;
    if (!runs.some((run) => standsFor(run, at, graceOf(timeline, run)))) {
      report.add('lost', `${runs[0]?.scheduleId ?? 'a schedule'}@${isoText(at)} has no run`);
    }
  }
  for (const run of runs) checkCount(run, timeline, byTime, report);
  checkCatchUp(timeline, runs, report);
}

function spansAt(timeline: Timeline, at: number): Span[] {
  const sure = timeline.expected.get(at);
  return sure ? [sure] : (timeline.possible.get(at) ?? []);
}

function checkVersion(run: RunRow, spans: readonly Span[], report: Report): void {
  if (spans.length === 0) report.add('phantom', `${nameOf(run)} was planned, and was not due`);
  else if (!spans.some(({ version }) => version === run.scheduleVersion)) {
    const versions = spans.map(({ version }) => version).join(' or ');
    report.add('phantom', `${nameOf(run)} has version ${run.scheduleVersion}; in force was ${versions}`);
  }
}

function checkMoment(run: RunRow, span: Span | undefined, report: Report): void {
  const lateBy = run.createdAt - run.scheduledFor;
  if (lateBy < 0) report.add('early', `${nameOf(run)} was planned at ${isoText(run.createdAt)}`);
  if (!span) return;
  const graceMs = span.definition.graceSeconds * 1000;
  const jitterMs = span.definition.jitterSeconds * 1000;
  const isWrong = run.trigger === 'catchUp' ? lateBy <= graceMs : lateBy > graceMs + jitterMs + WRITTEN_WITHIN_MS;
  if (isWrong) report.add('catchUp', `${nameOf(run)} was planned ${lateBy} ms late, as ${run.trigger}`);
}

function graceOf(timeline: Timeline, run: RunRow): number {
  return (spanOf(timeline, run)?.definition.graceSeconds ?? Infinity) * 1000;
}

/** Missed, and told to be: it lies in what a run stands for, and was too late when that was planned. */
function standsFor(run: RunRow, at: number, graceMs: number): boolean {
  if (run.coalescedFrom === null) return false;
  return run.coalescedFrom <= at && at < run.scheduledFor && run.createdAt - at > graceMs;
}

function checkCount(run: RunRow, timeline: Timeline, byTime: Map<number, RunRow[]>, report: Report): void {
  const { coalesced, coalescedFrom, scheduledFor } = run;
  if (coalescedFrom === null && coalesced === 0) return;
  const isFolded = (at: number) => at >= (coalescedFrom ?? NaN) && at < scheduledFor && !byTime.has(at);
  const sure = [...timeline.expected.keys()].filter(isFolded).length;
  const most = sure + [...timeline.possible.keys()].filter(isFolded).length;
  if (coalesced < sure || coalesced > most) {
    report.add('conservation', `${nameOf(run)} says it stands for ${coalesced} others; those are ${sure}`);
  }
}

/** What was planned together was written at one moment. */
function checkCatchUp(timeline: Timeline, runs: RunRow[], report: Report): void {
  for (const together of grouped(runs, ({ createdAt }) => createdAt).values()) {
    const [first] = together;
    const definition = first && spanOf(timeline, first)?.definition;
    if (!definition) continue;
    const fault = faultOfCatchUp(definition, together);
    if (fault !== null) report.add('catchUp', `${nameOf(first)}: ${fault}, with catchUp ${definition.catchUp}`);
  }
}

function faultOfCatchUp({ catchUp, catchUpLimit }: Span['definition'], together: readonly RunRow[]): string | null {
  const late = together.filter(({ trigger }) => trigger === 'catchUp');
  const skipped = together.filter(({ reason }) => reason === 'missed' || reason === 'limit');
  const fired = late.length - skipped.length;
  const standing = together.filter(({ coalesced }) => coalesced > 0);
  if (skipped.some((run) => run.trigger !== 'catchUp' || run.status !== 'skipped' || run.attempts > 0)) {
    return 'what was missed is more than a record';
  }
  if (skipped.length > 1 || standing.length > 1) return 'one outage has more than one record';
  switch (catchUp) {
    case 'skip':
      if (fired > 0) return `${fired} missed ones were fired`;
      return standing.some(({ reason }) => reason !== 'missed') ? 'a fire stands for missed ones' : null;
    case 'latest':
      if (skipped.length > 0) return 'missed ones are skipped';
      return fired > 1 || (fired === 1 && together.length > 1) ? `${fired} missed ones were fired` : null;
    case 'all':
      if (skipped.some(({ reason }) => reason !== 'limit')) return 'missed ones are skipped';
      if (standing.some(({ reason }) => reason !== 'limit')) return 'a fire stands for missed ones';
      if (skipped.length > 0 && fired !== catchUpLimit) return `only ${fired} of ${catchUpLimit} were fired`;
      return fired > catchUpLimit ? `${fired} missed ones were fired, more than ${catchUpLimit}` : null;
  }
}

export function nameOf(run: Pick<RunRow, 'id' | 'scheduleId' | 'scheduledFor'>): string {
  return `${run.scheduleId}@${isoText(run.scheduledFor)} (${run.id})`;
}
