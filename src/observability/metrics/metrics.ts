import { type Gauge, collectDefaultMetrics, Registry } from 'prom-client';
import type { Mode } from '../../core/installation.ts';
import type { Clock, DatabaseClock } from '../../runtime/clock.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { InstallationWatch } from '../../runtime/installation-watch.ts';
import { countEvents } from './event-metrics.ts';
import { metricsIn } from './metric-kinds.ts';
import type { Turning } from '../../runtime/loop/loop.ts';
import type { Database } from '../../postgres/database.ts';
import type { PoolUsage } from '../../postgres/pool.ts';
import { ALERT_KINDS } from '../../core/alerts/alert.ts';
import type { OpenRunCounts, ScheduleCounts, WorkGauges } from '../../store/reports/gauges.ts';

export interface Metrics extends DatabaseGauges {
  contentType: string;
  /** The Prometheus text format; asks nothing of the database. */
  text(): Promise<string>;
  /** Call it once, when the instance has been built. */
  observe(parts: InstanceParts): void;
}

interface MetricsDeps {
  clock: Clock;
  events: EventBus;
  version: string;
  zoneData: string;
  inFlight: () => number;
  leaseValid: () => boolean;
  installation: Pick<InstallationWatch, 'current'>;
}

/** Counters count events of this process since its start; gauges over the database are sampled. */
export function createMetrics(deps: MetricsDeps): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  countEvents(registry, deps.events);
  observeProcess(registry, deps);
  return {
    contentType: registry.contentType,
    text: async () => (await registry.metrics()).replace(NOTHING_MEASURED, ''),
    observe: (parts) => observeInstance(registry, parts),
    ...gaugesOfDatabase(registry, deps.clock),
  };
}

/**
 * Samples of the event loop's lag between two scrapes that were too close to each other. prom-client writes `Nan`, which Prometheus
 * does not read, and the largest number as the smallest lag.
 */
const NOTHING_MEASURED = /^.* (?:Nan|9223372036\.8\d*)\n/gm;

function observeProcess(registry: Registry, deps: MetricsDeps): void {
  const { gauge, readGauge } = metricsIn(registry);
  readGauge('firelock_in_flight_handoffs', 'Attempts under way in this process.', deps.inFlight);
  readGauge('firelock_lease_valid', '1 while the last heartbeat is young enough to act on claims.', () =>
    deps.leaseValid() ? 1 : 0,
  );
  const isOneOf = (modes: readonly Mode[]) => (modes.includes(deps.installation.current().mode) ? 1 : 0);
  readGauge('firelock_observing', '1 while this instance only observes: it plans and sends nothing.', () =>
    isOneOf(['observes']),
  );
  readGauge('firelock_maintenance', '1 while maintenance is in force, as far as this instance knows.', () =>
    isOneOf(['plansNothing', 'holds']),
  );
  gauge('firelock_info', 'The version of this process.', 'version').set({ version: deps.version }, 1);
  gauge('firelock_zone_data_info', 'The version of the time zone data of this process.', 'version').set(
    { version: deps.zoneData },
    1,
  );
}

/** The parts of an instance; known once all of them have been built. */
interface InstanceParts {
  clock: Clock;
  databaseClock: DatabaseClock;
  pools: Record<string, Database>;
  loops: readonly Turning[];
  /** The version of its time zone data. */
  zoneData: string;
}

/** Gauges of this process, which each scrape reads. */
export function observeInstance(registry: Registry, parts: InstanceParts): void {
  observeClocks(registry, parts);
  observeLoops(registry, parts.loops);
  observePools(registry, parts.pools);
}

function observeClocks(registry: Registry, { clock, databaseClock, zoneData }: InstanceParts): void {
  const { gauge, readGauge } = metricsIn(registry);
  readGauge(
    'firelock_clock_ahead_seconds',
    'How far this machine’s clock is ahead of the database’s, by the last answered heartbeat; negative: behind.',
    () => (clock.now() - databaseClock.now()) / 1000,
  );
  const year = Number(/^\d{4}/.exec(zoneData)?.[0]);
  const released = gauge(
    'firelock_zone_data_year',
    'The year in which the time zone data of this process were released; absent if its version does not say so.',
  );
  if (Number.isNaN(year)) released.remove();
  else released.set(year);
}

function observeLoops(registry: Registry, loops: readonly Turning[]): void {
  const { readGauges } = metricsIn(registry);
  const byLoop = (name: string, help: string, ms: (loop: Turning) => number) =>
    readGauges(name, help, 'loop', () => loops.map((loop) => [loop.name, ms(loop) / 1000]));
  byLoop(
    'firelock_loop_pass_seconds',
    'How long the pass of a loop that is under way has taken; 0 between passes. After two minutes the process ends.',
    (loop) => loop.inPassMs(),
  );
  byLoop(
    'firelock_loop_failing_seconds',
    'How long every pass of a loop has failed; 0 if its last pass succeeded.',
    (loop) => loop.failingMs(),
  );
}

/** A pool that has two uses is counted once, under the first. */
function observePools(registry: Registry, pools: Record<string, Database>): void {
  const { readGauges } = metricsIn(registry);
  const own = Object.entries(pools).filter(
    ([, database], index, all) => all.findIndex(([, other]) => other === database) === index,
  );
  const byPool = (name: string, help: string, value: (usage: PoolUsage) => number) =>
    readGauges(name, help, 'pool', () =>
      own.flatMap(([pool, database]) => {
        const usage = database.usage?.();
        return usage ? [[pool, value(usage)]] : [];
      }),
    );
  byPool('firelock_database_connections', 'Connections of a pool.', ({ size }) => size);
  byPool('firelock_database_connections_busy', 'Those of them that work.', ({ busy }) => busy);
  byPool('firelock_database_waiting', 'Pieces of work that wait for a connection of a pool.', ({ waiting }) => waiting);
}

/** The state of the database at the last sample of each kind. */
interface DatabaseGauges {
  workSampled: (work: WorkGauges) => void;
  openRunsCounted: (counts: OpenRunCounts) => void;
  schedulesCounted: (counts: ScheduleCounts) => void;
  schedulesAheadCounted: (schedules: number) => void;
}

/** Gauges of the database; each is as old as its last sample. */
function gaugesOfDatabase(registry: Registry, clock: Clock): DatabaseGauges {
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
  const atLimit = gauge('firelock_runs_waiting_for_limit', `Due runs that wait for a place of their limit, ${COUNTED}`);
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
