import { Counter, Histogram, type Registry } from 'prom-client';
import type { FirelockEvent, RunSettled } from '../core/events.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Handlers } from './handlers.ts';
import { historyHandlers } from './history-metrics.ts';

/** Milliseconds to minutes: from a fire on time to one that waited for a restart. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

/** Counters and histograms of what happens in this process, since its start. */
export function countEvents(registry: Registry, events: EventBus): void {
  const handlers: Handlers = {
    ...runHandlers(registry),
    ...loopHandlers(registry),
    ...historyHandlers(registry),
  };
  events.subscribe((event) => {
    (handlers[event.type] as ((event: FirelockEvent) => void) | undefined)?.(event);
  });
}

function runHandlers(registry: Registry): Handlers {
  const registers = [registry];
  const ended = {
    succeeded: new Counter({
      name: 'firelock_runs_succeeded_total',
      help: 'Runs handed off and ended well.',
      registers,
    }),
    failed: new Counter({
      name: 'firelock_runs_failed_total',
      help: 'Runs that failed for good.',
      registers,
    }),
    unknown: new Counter({
      name: 'firelock_runs_unknown_total',
      help: 'Runs to be handed off at most once whose outcome stays unknown.',
      registers,
    }),
  };
  const abandoned = new Counter({
    name: 'firelock_runs_abandoned_total',
    help: 'Runs given up: their schedule was deleted, or recovery gave up.',
    registers,
  });
  const lost = new Counter({
    name: 'firelock_runs_lost_total',
    help: 'Times a run was found with a claim that nobody acts on; /api/v1/stats counts the runs.',
    registers,
  });
  const recovered = new Counter({
    name: 'firelock_runs_recovered_total',
    help: 'Lost runs handed off after all.',
    registers,
  });
  const skipped = new Counter({
    name: 'firelock_runs_skipped_total',
    help: 'Runs recorded and not sent, by the policy of their schedule: missed, beyond the limit of catching up, or overlapping.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['missed', 'limit', 'overlap']) skipped.inc({ reason }, 0);
  const cancelled = new Counter({
    name: 'firelock_runs_cancelled_total',
    help: 'Runs called off.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['replaced', 'request']) cancelled.inc({ reason }, 0);
  const accepted = new Counter({
    name: 'firelock_runs_accepted_total',
    help: 'One-off runs recorded.',
    registers,
  });
  const retried = new Counter({
    name: 'firelock_runs_retried_total',
    help: 'Runs that had ended and that somebody asked to be handed off again.',
    registers,
  });
  const expired = new Counter({
    name: 'firelock_completions_expired_total',
    help: 'Times that neither the worker nor the target of a running run was heard of in time.',
    registers,
  });
  const handoffs = new Counter({
    name: 'firelock_handoffs_total',
    help: 'Attempts by kind of target and outcome.',
    labelNames: ['target', 'outcome'],
    registers,
  });
  const handoffSeconds = new Histogram({
    name: 'firelock_handoff_duration_seconds',
    help: 'One attempt, from name resolution to the last byte of the answer.',
    labelNames: ['target'],
    buckets: SECONDS,
    registers,
  });
  const cancelCalls = new Counter({
    name: 'firelock_cancel_calls_total',
    help: 'Targets that were to be told that a running run is cancelled or replaced, by whether they took it.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of ['accepted', 'failed']) cancelCalls.inc({ outcome }, 0);
  const runSeconds = new Histogram({
    name: 'firelock_run_duration_seconds',
    help: 'From the first claim of a run to its end.',
    buckets: SECONDS,
    registers,
  });
  const lateness = new Histogram({
    name: 'firelock_fire_lateness_seconds',
    help: 'From the moment a fire was due to the start of its first attempt.',
    buckets: SECONDS,
    registers,
  });
  const intents = new Counter({
    name: 'firelock_intents_recorded_total',
    help: 'Fires planned and recorded.',
    registers,
  });
  const coalesced = new Counter({
    name: 'firelock_fires_coalesced_total',
    help: 'Missed fires that were folded into another run.',
    registers,
  });
  const fenced = new Counter({
    name: 'firelock_settlements_fenced_total',
    help: 'Outcomes whose claim was gone when they were to be written.',
    registers,
  });
  const settled = ({ status, durationMs, recovered: wasLost }: RunSettled): void => {
    if (status === 'succeeded' || status === 'failed' || status === 'unknown') ended[status].inc();
    if (wasLost) recovered.inc();
    if (durationMs !== null) runSeconds.observe(Math.max(0, durationMs) / 1000);
  };
  return {
    runStarted: ({ latenessMs }) => lateness.observe(Math.max(0, latenessMs) / 1000),
    pullRunsClaimed: ({ count }) => handoffs.inc({ target: 'pull', outcome: 'accepted' }, count),
    attemptEnded: ({ target, outcome, durationMs }) => {
      handoffs.inc({ target, outcome });
      handoffSeconds.observe({ target }, durationMs / 1000);
    },
    runSettled: ({ settlement }) => settled(settlement),
    runCompleted: ({ settlement }) => settled(settlement),
    runsExpired: ({ runs }) => {
      expired.inc(runs.length);
      for (const { settlement } of runs) settled(settlement);
    },
    runRetried: () => retried.inc(),
    runsAccepted: ({ count }) => accepted.inc(count),
    dependentsFailed: ({ count }) => ended.failed.inc(count),
    targetCancelled: ({ accepted }) => cancelCalls.inc({ outcome: accepted ? 'accepted' : 'failed' }),
    intentsRecorded: (event) => {
      intents.inc(event.fires);
      coalesced.inc(event.coalesced);
    },
    settlementFenced: ({ alreadyEnded }) => fenced.inc(alreadyEnded ? 0 : 1),
    runsSkipped: ({ reason, count }) => skipped.inc({ reason }, count),
    runsCancelled: ({ reason, count }) => cancelled.inc({ reason }, count),
    runsAbandoned: ({ count }) => abandoned.inc(count),
    runsTakenOver: ({ runs }) => {
      const count = (verdict: string) => runs.filter((run) => run.verdict === verdict).length;
      lost.inc(runs.length);
      ended.unknown.inc(count('unknown'));
      abandoned.inc(runs.length - count('unknown') - count('again'));
    },
  };
}

function loopHandlers(registry: Registry): Handlers {
  const registers = [registry];
  const tickSeconds = new Histogram({
    name: 'firelock_tick_duration_seconds',
    help: 'One pass of the tick: locking, planning and recording a batch.',
    buckets: SECONDS,
    registers,
  });
  const fireLocks = new Counter({
    name: 'firelock_fire_locks_total',
    help: 'Fire-locks acquired, taken over from expired ones, seen at others (contended), lost before the commit (fenced).',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of ['acquired', 'contended', 'expired', 'fenced']) fireLocks.inc({ outcome }, 0);
  const failures = new Counter({
    name: 'firelock_loop_failures_total',
    help: 'Passes of a loop that failed, such as for want of a database.',
    labelNames: ['loop'],
    registers,
  });
  const setAside = new Counter({
    name: 'firelock_schedules_set_aside_total',
    help: 'Times a schedule could not be planned.',
    registers,
  });
  const recoverySeconds = new Histogram({
    name: 'firelock_recovery_duration_seconds',
    help: 'One pass of the recovery loop.',
    buckets: SECONDS,
    registers,
  });
  const released = new Counter({
    name: 'firelock_waiting_released_total',
    help: 'Runs found waiting for nothing any more, where what was to follow from an end was deleted by another program; they went on.',
    registers,
  });
  const paused = new Counter({
    name: 'firelock_schedules_paused_total',
    help: 'Schedules that this instance paused, since their target answered 410 Gone.',
    registers,
  });
  const moved = new Counter({
    name: 'firelock_cursors_moved_total',
    help: 'Next fires that other time zone data had computed, moved to where the data of this instance put them.',
    registers,
  });
  const putOff = new Counter({
    name: 'firelock_effects_failed_total',
    help: 'Times that a consequence of the end of a run could not be done; it is tried again.',
    registers,
  });
  const deaths = new Counter({
    name: 'firelock_instances_declared_dead_total',
    help: 'Silent instances that this one declared dead.',
    registers,
  });
  const replaced = new Counter({
    name: 'firelock_instance_replaced_total',
    help: 'Times this process was declared dead by the others and went on under another id.',
    registers,
  });
  const wentBack = new Counter({
    name: 'firelock_database_went_back_total',
    help: 'Times the database had lost commits that it had confirmed: a failover or a restored backup.',
    registers,
  });
  return {
    tickFinished: ({ durationMs }) => tickSeconds.observe(durationMs / 1000),
    fireLocks: ({ outcome, count }) => fireLocks.inc({ outcome }, count),
    loopFailed: ({ loop }) => failures.inc({ loop }),
    scheduleSetAside: () => setAside.inc(),
    recoveryFinished: ({ durationMs }) => recoverySeconds.observe(durationMs / 1000),
    waitingReleased: ({ count }) => released.inc(count),
    schedulePaused: () => paused.inc(),
    effectPutOff: () => putOff.inc(),
    cursorsMoved: ({ count }) => moved.inc(count),
    instancesDeclaredDead: ({ instanceIds }) => deaths.inc(instanceIds.length),
    instanceReplaced: () => replaced.inc(),
    databaseWentBack: () => wentBack.inc(),
  };
}
