import type { Registry } from 'prom-client';
import type { Handlers } from '../handlers.ts';
import { metricsIn } from './metric-kinds.ts';

/** The work of loops, and what they find. */
export function loopHandlers(registry: Registry): Handlers {
  return { ...planningHandlers(registry), ...upkeepHandlers(registry), ...instanceHandlers(registry) };
}

function planningHandlers(registry: Registry): Handlers {
  const { counter, seconds } = metricsIn(registry);
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
  const { counter } = metricsIn(registry);
  const deaths = counter(
    'firelock_instances_declared_dead_total',
    'Silent instances that this one declared dead.',
  );
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
  };
}
