import type { Registry } from 'prom-client';
import { BROWSER_REFUSALS, FAILED_AUTHENTICATION } from '../../core/access/access-events.ts';
import { PING_OUTCOMES } from '../../core/runs/observed-report.ts';
import type { FirelockEvent } from '../../core/events.ts';
import { SPANS_DROPPED } from '../../core/trace-events.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Handlers } from '../handlers.ts';
import { messageHandlers, runHandlers } from './run-metrics.ts';
import { metricsIn } from './metric-kinds.ts';

/** Counters and histograms of events in this process, since its start. */
export function countEvents(registry: Registry, events: EventBus): void {
  const others: Handlers = {
    ...runHandlers(registry),
    ...loopHandlers(registry),
    ...historyHandlers(registry),
    ...pingHandlers(registry),
    ...accessHandlers(registry),
    ...traceHandlers(registry),
  };
  for (const handlers of [others, messageHandlers(registry)]) {
    events.subscribe((event) => {
      (handlers[event.type] as ((event: FirelockEvent) => void) | undefined)?.(event);
    });
  }
}

function pingHandlers(registry: Registry): Handlers {
  const pings = metricsIn(registry).counter(
    'firelock_pings_total',
    'Reports of jobs of observed schedules: taken, before their moment (early), about what had expired (late), without an occurrence (extra), said before (unchanged), without a run (dropped), with an unknown key, too many (limited).',
    'outcome',
  );
  for (const outcome of PING_OUTCOMES) pings.inc({ outcome }, 0);
  return { pinged: ({ outcome }) => pings.inc({ outcome }) };
}

/** The work of loops, and what they find. */
function loopHandlers(registry: Registry): Handlers {
  return { ...planningHandlers(registry), ...upkeepHandlers(registry), ...instanceHandlers(registry) };
}

function planningHandlers(registry: Registry): Handlers {
  const { counter, gauge, seconds } = metricsIn(registry);
  const tickSeconds = seconds(
    'firelock_tick_duration_seconds',
    'One pass of the tick: locking, planning and recording a batch.',
  );
  const fireLocks = counter(
    'firelock_fire_locks_total',
    'Fire-locks acquired, taken over from expired ones, seen at others (contended), lost before the commit (fenced).',
    'outcome',
  );
  for (const outcome of ['acquired', 'contended', 'expired', 'fenced']) fireLocks.inc({ outcome }, 0);
  const rowsSetAside = gauge(
    'firelock_rows_set_aside',
    'Rows that a loop of this instance leaves out for now, since the database refused to write them or it took too long; the log names them.',
    'loop',
  );
  const failures = counter(
    'firelock_loop_failures_total',
    'Passes of a loop that failed, such as for want of a database.',
    'loop',
  );
  const setAside = counter('firelock_schedules_set_aside_total', 'Times a schedule could not be planned.');
  return {
    tickFinished: ({ durationMs }) => tickSeconds.observe(durationMs / 1000),
    fireLocks: ({ outcome, count }) => fireLocks.inc({ outcome }, count),
    loopFailed: ({ loop }) => failures.inc({ loop }),
    rowsSetAside: ({ loop, count }) => rowsSetAside.set({ loop }, count),
    scheduleSetAside: () => setAside.inc(),
  };
}

function upkeepHandlers(registry: Registry): Handlers {
  const { counter, seconds } = metricsIn(registry);
  const recoverySeconds = seconds('firelock_recovery_duration_seconds', 'One pass of the recovery loop.');
  const released = counter(
    'firelock_waiting_released_total',
    'Runs found waiting for nothing any more, where what was to follow from an end was deleted by another program; they went on.',
  );
  const paused = counter(
    'firelock_schedules_paused_total',
    'Schedules that this instance paused: their target answered 410 Gone, or too many of their runs failed.',
  );
  const moved = counter(
    'firelock_cursors_moved_total',
    'Next fires that other time zone data had computed, moved to where the data of this instance put them.',
  );
  const putOff = counter(
    'firelock_effects_failed_total',
    'Times that a consequence of the end of a run could not be done; it is tried again.',
  );
  return {
    recoveryFinished: ({ durationMs }) => recoverySeconds.observe(durationMs / 1000),
    waitingReleased: ({ count }) => released.inc(count),
    schedulePaused: () => paused.inc(),
    effectPutOff: () => putOff.inc(),
    cursorsMoved: ({ count }) => moved.inc(count),
  };
}

function instanceHandlers(registry: Registry): Handlers {
  const { counter, gauge } = metricsIn(registry);
  const lacked = gauge(
    'firelock_resources_lacked',
    '1 while this instance lacks what it takes to send, such as file descriptors or ports: it leaves runs to others.',
  );
  lacked.set(0);
  const deaths = counter('firelock_instances_declared_dead_total', 'Silent instances that this one declared dead.');
  const replaced = counter(
    'firelock_instance_replaced_total',
    'Times this process was declared dead by the others and went on under another id.',
  );
  const wentBack = counter(
    'firelock_database_went_back_total',
    'Times the database had lost commits that it had confirmed: a failover or a restored backup.',
  );
  return {
    instancesDeclaredDead: ({ instanceIds }) => deaths.inc(instanceIds.length),
    instanceReplaced: () => replaced.inc(),
    databaseWentBack: () => wentBack.inc(),
    resourcesLacked: () => lacked.set(1),
    resourcesBack: () => lacked.set(0),
  };
}

/** What is kept and what is dropped; the gauges are as old as this instance's last look, every ten minutes. */
function historyHandlers(registry: Registry): Handlers {
  const { counter, gauge } = metricsIn(registry);
  const dropped = counter(
    'firelock_history_days_dropped_total',
    'Days of history that this instance dropped, as they are older than the retention.',
  );
  const days = gauge('firelock_history_days', 'Days of history that have a partition, coming ones included.');
  const oldest = gauge('firelock_history_oldest_day_timestamp_seconds', 'When the oldest of them began.');
  // Absent until it is known.
  oldest.remove();
  const ahead = gauge(
    'firelock_history_days_ahead',
    'Coming days that have a partition already. What ends on a day without one goes to the default partition.',
  );
  const late = gauge(
    'firelock_history_days_late',
    'Days older than the retention that could not be dropped yet: another transaction uses them.',
  );
  return {
    historyDropped: (event) => dropped.inc(event.days.length),
    partitionsCounted: (event) => ahead.set(event.ahead),
    historySeen: (event) => {
      days.set(event.days);
      if (event.oldest !== null) oldest.set(event.oldest / 1000);
      late.set(event.late);
    },
  };
}

const REFUSALS = [
  ...FAILED_AUTHENTICATION,
  ...BROWSER_REFUSALS,
  ...['role', 'tooManyFailures', 'tooManyCalls', 'tooManyAtOnce', 'tooMuchUnread'],
];

/** Calls that the API refused because of their caller. No label names a caller. */
function accessHandlers(registry: Registry): Handlers {
  const refused = metricsIn(registry).counter(
    'firelock_calls_refused_total',
    'API calls answered 401 (no valid token), 403 (the role, or a page of another site, may not) or 429 (too many), by reason.',
    'reason',
  );
  for (const reason of REFUSALS) refused.inc({ reason }, 0);
  return { callRefused: ({ reason }) => refused.inc({ reason }) };
}

/** Spans, on their way to the collector. */
function traceHandlers(registry: Registry): Handlers {
  const { counter } = metricsIn(registry);
  const exported = counter('firelock_spans_exported_total', 'Spans that the trace collector has taken.');
  const dropped = counter(
    'firelock_spans_dropped_total',
    'Spans that are gone: too many waited (full), the collector does not take them (refused), the daemon stopped (stopped).',
    'reason',
  );
  for (const reason of SPANS_DROPPED) dropped.inc({ reason }, 0);
  return {
    spansExported: ({ count }) => exported.inc(count),
    spansDropped: ({ reason, count }) => dropped.inc({ reason }, count),
  };
}
