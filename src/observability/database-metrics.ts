import { Gauge, type Registry } from 'prom-client';
import type { Gauges } from '../store/gauges.ts';

/** Gauges over the database; set by a sample, and as old as the last one. */
export function gaugesOfDatabase(registry: Registry): (gauges: Gauges) => void {
  const registers = [registry];
  const schedules = new Gauge({
    name: 'firelock_schedules',
    help: 'Schedules by status.',
    labelNames: ['status'],
    registers,
  });
  const openRuns = new Gauge({
    name: 'firelock_runs_open',
    help: 'Runs that have not ended, by status.',
    labelNames: ['status'],
    registers,
  });
  const oldestPending = new Gauge({
    name: 'firelock_oldest_pending_seconds',
    help: 'How long the oldest pending run has been due, claimed or not.',
    registers,
  });
  const stranded = new Gauge({
    name: 'firelock_runs_stranded',
    help: 'Pending runs claimed by an instance that is silent or gone, not taken over yet.',
    registers,
  });
  const overdue = new Gauge({
    name: 'firelock_schedules_overdue',
    help: 'Schedules due for longer than three tick intervals and not planned.',
    registers,
  });
  const alive = new Gauge({
    name: 'firelock_instances_alive',
    help: 'Instances with a young heartbeat.',
    registers,
  });
  const zoneData = new Gauge({
    name: 'firelock_zone_data_versions',
    help: 'Versions of the time zone data among living instances; more than one: they may plan fires differently.',
    registers,
  });
  return (gauges) => {
    for (const [status, count] of Object.entries(gauges.schedules)) schedules.set({ status }, count);
    for (const [status, count] of Object.entries(gauges.openRuns)) openRuns.set({ status }, count);
    oldestPending.set(gauges.oldestPendingSeconds);
    stranded.set(gauges.strandedRuns);
    overdue.set(gauges.schedulesOverdue);
    alive.set(gauges.instancesAlive);
    zoneData.set(gauges.zoneData.length);
  };
}
