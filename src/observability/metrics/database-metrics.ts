import type { Gauge, Registry } from 'prom-client';
import { ALERT_KINDS } from '../../core/alerts/alert.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { OpenRunCounts, ScheduleCounts, WorkGauges } from '../../store/reports/gauges.ts';
import { metricsIn } from './metric-kinds.ts';

/** The state of the database at the last sample of each kind. */
export interface DatabaseGauges {
  workSampled: (work: WorkGauges) => void;
  openRunsCounted: (counts: OpenRunCounts) => void;
  schedulesCounted: (counts: ScheduleCounts) => void;
  schedulesAheadCounted: (schedules: number) => void;
}

/** Gauges of the database; each is as old as its last sample. */
export function gaugesOfDatabase(registry: Registry, clock: Clock): DatabaseGauges {
  const { gauge } = metricsIn(registry);
  const sampledAt = gauge(
    'firelock_sampled_timestamp_seconds',
    'When the gauges over the database were sampled last, in seconds since 1970: of schedules, of runs_open, of all others.',
    'gauges',
  );
  const sampled = (gauges: string) => sampledAt.set({ gauges }, clock.now() / 1000);
  const counted = (counts: Record<string, number>, into: Gauge, name: string) => {
    for (const [status, count] of Object.entries(counts)) into.set({ status }, count);
    sampled(name);
  };
  const schedules = gauge('firelock_schedules', `Schedules by status, ${COUNTED}`, 'status');
  const openRuns = gauge('firelock_runs_open', `Runs that have not ended, by status, ${COUNTED}`, 'status');
  const atLimit = gauge(
    'firelock_runs_waiting_for_limit',
    `Due runs that wait for a place of their limit, ${COUNTED}`,
  );
  const ahead = gauge(
    'firelock_schedules_ahead',
    `Enabled schedules that were planned while the clock of the database was ahead, and are silent until then, ${COUNTED}`,
  );
  const alerts = gauge('firelock_alerts_open', `Alerts that are open, by kind, ${COUNTED}`, 'kind');
  const work = WORK.map(({ name, help, value }) => ({ value, into: gauge(name, help) }));
  return {
    workSampled: (found) => {
      for (const { value, into } of work) into.set(value(found));
      for (const kind of ALERT_KINDS) alerts.set({ kind }, found.alertsOpen[kind] ?? 0);
      sampled('work');
    },
    openRunsCounted: ({ byStatus, waitingForLimit }) => {
      counted(byStatus, openRuns, 'runs_open');
      atLimit.set(waitingForLimit);
    },
    schedulesAheadCounted: (count) => ahead.set(count),
    schedulesCounted: (counts) => counted(counts, schedules, 'schedules'),
  };
}

const COUNTED =
  'counted every ten seconds, or where that takes long more seldom, down to every ten minutes: firelock_sampled_timestamp_seconds says when.';

const WORK: readonly { name: string; help: string; value: (work: WorkGauges) => number }[] = [
  {
    name: 'firelock_oldest_pending_seconds',
    help: 'How long the oldest pending run has been due, claimed or not; with a limit, since it has a place of it.',
    value: (work) => work.oldestPendingSeconds,
  },
  {
    name: 'firelock_runs_stranded',
    help: 'Pending runs claimed by an instance that is silent or gone, not taken over yet.',
    value: (work) => work.strandedRuns,
  },
  {
    name: 'firelock_schedules_overdue',
    help: 'Schedules due for longer than three tick intervals and not planned; 0 during maintenance.',
    value: (work) => work.schedulesOverdue,
  },
  {
    name: 'firelock_schedules_late',
    help: 'Schedules of which no run has succeeded within their successWithinSeconds.',
    value: (work) => work.schedulesLate,
  },
  {
    name: 'firelock_effects_pending',
    help: 'Consequences of ends of runs, and of edits and deletions with many open runs, that are still to be seen to.',
    value: (work) => work.effectsPending,
  },
  {
    name: 'firelock_effects_failing',
    help: 'Those of them that have failed and are tried again; the log says why.',
    value: (work) => work.effectsFailing,
  },
  {
    name: 'firelock_oldest_effect_seconds',
    help: 'How long the oldest consequence of an end has waited to be seen to, without those that have failed.',
    value: (work) => work.oldestEffectSeconds,
  },
  {
    name: 'firelock_instances_alive',
    help: 'Instances with a young heartbeat.',
    value: (work) => work.instancesAlive,
  },
  {
    name: 'firelock_oldest_snapshot_seconds',
    help: 'For how long the oldest transaction in the database has kept its snapshot, and so everybody’s old row versions; of other roles only with pg_read_all_stats.',
    value: (work) => work.oldestSnapshotSeconds,
  },
  {
    name: 'firelock_zone_data_versions',
    help: 'Versions of the time zone data among living instances; more than one: they may plan fires differently.',
    value: (work) => work.zoneData.length,
  },
];
