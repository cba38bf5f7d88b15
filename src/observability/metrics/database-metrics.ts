import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../runtime/clock.ts';
import type { OpenRunCounts, ScheduleCounts } from '../../store/reports/counts.ts';
import type { WorkGauges } from '../../store/reports/gauges.ts';

/** The state of the database at the last sample of each kind. */
export interface DatabaseGauges {
  workSampled: (work: WorkGauges) => void;
  openRunsCounted: (counts: OpenRunCounts) => void;
  schedulesCounted: (counts: ScheduleCounts) => void;
}

/** Gauges of the database; each is as old as its last sample. */
export function gaugesOfDatabase(registry: Registry, clock: Clock): DatabaseGauges {
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const byStatus = (name: string, help: string) =>
    new Gauge({ name, help: `${help}, ${COUNTED}`, labelNames: ['status'], registers });
  const sampledAt = new Gauge({
    name: 'firelock_sampled_timestamp_seconds',
    help: 'When the gauges over the database were sampled last, in seconds since 1970: of schedules, of runs_open, of all others.',
    labelNames: ['gauges'],
    registers,
  });
  const sampled = (gauges: string) => sampledAt.set({ gauges }, clock.now() / 1000);
  const counted = (counts: Record<string, number>, into: Gauge<'status'>, name: string) => {
    for (const [status, count] of Object.entries(counts)) into.set({ status }, count);
    sampled(name);
  };
  const schedules = byStatus('firelock_schedules', 'Schedules by status');
  const openRuns = byStatus('firelock_runs_open', 'Runs that have not ended, by status');
  const atLimit = gauge(
    'firelock_runs_waiting_for_limit',
    `Due runs that wait for a place of their limit, ${COUNTED}`,
  );
  const setWork = workGauges(gauge);
  return {
    workSampled: (work) => {
      setWork(work);
      sampled('work');
    },
    openRunsCounted: ({ byStatus: counts, waitingForLimit }) => {
      counted(counts, openRuns, 'runs_open');
      atLimit.set(waitingForLimit);
    },
    schedulesCounted: (counts) => {
      counted(counts, schedules, 'schedules');
    },
  };
}

const COUNTED =
  'counted every ten seconds, or where that takes long more seldom, down to every ten minutes: firelock_sampled_timestamp_seconds says when.';

// eslint-disable-next-line max-lines-per-function -- one entry for each gauge
function workGauges(gauge: (name: string, help: string) => Gauge): (work: WorkGauges) => void {
  const oldestPending = gauge(
    'firelock_oldest_pending_seconds',
    'How long the oldest pending run has been due, claimed or not; without runs that wait for a place of their limit.',
  );
  const stranded = gauge(
    'firelock_runs_stranded',
    'Pending runs claimed by an instance that is silent or gone, not taken over yet.',
  );
  const overdue = gauge(
    'firelock_schedules_overdue',
    'Schedules due for longer than three tick intervals and not planned; 0 during maintenance.',
  );
  const late = gauge(
    'firelock_schedules_late',
    'Schedules of which no run has succeeded within their successWithinSeconds.',
  );
  const effects = gauge(
    'firelock_effects_pending',
    'Consequences of ends of runs, and of edits and deletions with many open runs, that are still to be seen to.',
  );
  const effectsFailing = gauge(
    'firelock_effects_failing',
    'Those of them that have failed and are tried again; the log says why.',
  );
  const oldestEffect = gauge(
    'firelock_oldest_effect_seconds',
    'How long the oldest consequence of an end has waited to be seen to, without those that have failed.',
  );
  const alive = gauge('firelock_instances_alive', 'Instances with a young heartbeat.');
  const oldestSnapshot = gauge(
    'firelock_oldest_snapshot_seconds',
    'For how long the oldest transaction in the database has kept its snapshot, and so everybody’s old row versions; of other roles only with pg_read_all_stats.',
  );
  const zoneData = gauge(
    'firelock_zone_data_versions',
    'Versions of the time zone data among living instances; more than one: they may plan fires differently.',
  );
  return (work) => {
    oldestPending.set(work.oldestPendingSeconds);
    stranded.set(work.strandedRuns);
    overdue.set(work.schedulesOverdue);
    late.set(work.schedulesLate);
    effects.set(work.effectsPending);
    effectsFailing.set(work.effectsFailing);
    oldestEffect.set(work.oldestEffectSeconds);
    alive.set(work.instancesAlive);
    oldestSnapshot.set(work.oldestSnapshotSeconds);
    zoneData.set(work.zoneData.length);
  };
}
