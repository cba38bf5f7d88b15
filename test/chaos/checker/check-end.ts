import { nameOf } from './check-plan.ts';
import type { History, RunRow } from './history.ts';
import { type Timeline, grouped, isOfCommands, spanOf } from './timeline.ts';
import { type Report, isoText } from './violations.ts';

/** Long enough after its TTL for another instance to have declared a silent one dead. */
const DECLARED_WITHIN_MS = 15_000;
const OVERDUE_MS = 10_000;

/** After the drain nothing is open or held, everything adds up, and every instance works. */
export function checkRest(history: History, report: Report): void {
  checkStuck(history, report);
  checkRows(history, report);
  checkStats(history, report);
  checkLiveness(history, report);
}

function checkStuck({ dump, settings }: History, report: Report): void {
  for (const run of dump.runs) {
    if (run.status !== 'pending' && run.status !== 'waiting') continue;
    const holder = run.claimedBy ?? 'no instance';
    report.add('stuck', `${nameOf(run)} is ${run.status}, attempt ${run.attempts}, claimed by ${holder}`);
  }
  for (const { id, enabled, nextFireAt, lockedBy, lockedAt } of dump.schedules) {
    if (lockedBy !== null && dump.at - (lockedAt ?? 0) > settings.lockTtlSeconds * 1000) {
      report.add('stuck', `${id} is locked by ${lockedBy} since ${isoText(lockedAt)}`);
    }
    if (enabled && nextFireAt !== null && nextFireAt < dump.at - OVERDUE_MS) {
      report.add('stuck', `${id} was to fire at ${isoText(nextFireAt)}, and is not planned`);
    }
  }
  const silentSince = dump.at - settings.ttlSeconds * 1000 - DECLARED_WITHIN_MS;
  for (const { id, heartbeatAt, diedAt } of dump.instances) {
    if (diedAt === null && heartbeatAt < silentSince) {
      report.add('stuck', `instance ${id} is silent since ${isoText(heartbeatAt)} and not declared dead`);
    }
  }
}

const ENDED = new Set(['succeeded', 'failed', 'unknown', 'abandoned', 'skipped', 'cancelled']);

function checkRows({ dump }: History, report: Report): void {
  const runs = new Map(dump.runs.map((run) => [run.id, run]));
  for (const run of dump.runs) {
    const fault = faultOfRow(run);
    if (fault !== null) report.add('conservation', `${nameOf(run)}: ${fault}`);
  }
  for (const { runId, attempt } of dump.attempts) {
    const run = runs.get(runId);
    if (!run) report.add('conservation', `attempt ${attempt} of ${runId} is of no run`);
    else if (attempt > run.attempts) {
      report.add('conservation', `${nameOf(run)} counts ${run.attempts} attempts, its log has attempt ${attempt}`);
    }
  }
}

function faultOfRow(run: RunRow): string | null {
  if (ENDED.has(run.status) !== (run.finishedAt !== null)) return `${run.status}, ended ${isoText(run.finishedAt)}`;
  if (run.status === 'succeeded' && run.handedOffAt === null) return 'succeeded and never handed off';
  if (run.recoveries > 0 && run.lostAt === null) return 'recovered and never lost';
  if (run.failures > run.attempts) return `${run.failures} failures in ${run.attempts} attempts`;
  return null;
}

/** The runs that follow others are open: they wait for a worker. */
function checkStats({ dump, stats }: History, report: Report): void {
  if (!stats) return;
  const counts = grouped(dump.runs, ({ status }) => status);
  const countOf = (...statuses: string[]) =>
    statuses.reduce((sum, status) => sum + (counts.get(status)?.length ?? 0), 0);
  const lost = dump.runs.filter(({ lostAt }) => lostAt !== null);
  const expected: Record<string, number> = {
    totalRuns: dump.runs.length + dump.followers.length,
    succeededRuns: countOf('succeeded'),
    failedRuns: countOf('failed'),
    unknownRuns: countOf('unknown'),
    abandonedRuns: countOf('abandoned'),
    skippedRuns: countOf('skipped'),
    cancelledRuns: countOf('cancelled'),
    openRuns: countOf('pending', 'running', 'waiting') + dump.followers.length,
    lostRuns: lost.length,
    recoveredRuns: lost.filter(({ handedOffAt }) => handedOffAt !== null).length,
  };
  for (const [name, count] of Object.entries(expected)) {
    if (stats[name] !== count) {
      report.add('conservation', `/stats says ${name} ${String(stats[name])}, the rows say ${count}`);
    }
  }
}

function checkLiveness({ instances, disturbances, arrivals, healedAt, settings }: History, report: Report): void {
  for (const { name, ready, ticking } of instances) {
    if (!ready) report.add('liveness', `instance ${name} is not ready`);
    else if (!ticking) report.add('liveness', `instance ${name} does not tick`);
  }
  for (const { kind, instance, from } of disturbances) {
    if (kind === 'ended') report.add('liveness', `instance ${instance} ended by itself before ${isoText(from)}`);
  }
  const alive = arrivals.some(
    ({ scheduleId, scheduledFor }) => scheduleId === settings.canaryId && scheduledFor > healedAt,
  );
  if (!alive) report.add('liveness', `the canary was silent after ${isoText(healedAt)}`);
}

/** Clocks of instances may be a little ahead of the database's when they tell when a run ended. */
const CLOCKS_MS = 50;

/** Each run stands in one table, and each end had what follows from it: once, and not before it. */
export function checkEffects({ dump }: History, timelines: Map<string, Timeline>, report: Report): void {
  for (const [id, rows] of grouped(dump.runs, (run) => run.id)) {
    if (rows.length > 1) report.add('tables', `${id} stands in ${rows.map(({ table }) => table).join(' and ')}`);
  }
  for (const run of dump.runs) {
    if ((run.finishedAt !== null) !== (run.table === 'history'))
      report.add('tables', `${nameOf(run)} is ${run.status}, and stands in ${run.table}`);
  }
  for (const { kind, runId, failures, error } of dump.effects) {
    report.add('effects', `${kind} of ${runId} was never done; failed ${failures} times: ${error ?? 'no reason'}`);
  }
  checkFollowers(dump, timelines, report);
}

function checkFollowers({ runs, followers }: History['dump'], timelines: Map<string, Timeline>, report: Report): void {
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
        report.add('effects', `${nameOf(run)} ended at ${isoText(run.endedAt)}, followed at ${isoText(createdAt)}`);
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
