import type { Registry } from 'prom-client';
import type { RunSettled } from '../../core/events.ts';
import { BOUNDS } from '../../core/schedules/expect.ts';
import type { EventOf, Handlers } from '../handlers.ts';
import { metricsIn } from './metric-kinds.ts';

/** Runs, from their recording to their end. Ends of messages of notifiers are counted below. */
export function runHandlers(registry: Registry): Handlers {
  const ends = createEndCounters(registry);
  return {
    ...endHandlers(registry, ends),
    ...lostHandlers(registry, ends),
    ...recordedHandlers(registry),
    ...attemptHandlers(registry),
    ...unmetHandlers(registry),
  };
}

type EndCounters = ReturnType<typeof createEndCounters>;

function createEndCounters(registry: Registry) {
  const { counter } = metricsIn(registry);
  return {
    succeeded: counter('firelock_runs_succeeded_total', 'Runs handed off and ended well.'),
    failed: counter('firelock_runs_failed_total', 'Runs that failed for good.'),
    unknown: counter('firelock_runs_unknown_total', 'Runs to be handed off at most once whose outcome stays unknown.'),
    abandoned: counter(
      'firelock_runs_abandoned_total',
      'Runs given up: their schedule was deleted, or recovery gave up.',
    ),
  };
}

function endHandlers(registry: Registry, ends: EndCounters): Handlers {
  const { counter, seconds } = metricsIn(registry);
  const recovered = counter('firelock_runs_recovered_total', 'Lost runs handed off after all.');
  const expired = counter(
    'firelock_completions_expired_total',
    'Times that neither the worker nor the target of a running run was heard of in time.',
  );
  const runSeconds = seconds('firelock_run_duration_seconds', 'From the first claim of a run to its end.');
  const settled = ({ status, durationMs, recovered: wasLost }: RunSettled): void => {
    if (status === 'succeeded' || status === 'failed' || status === 'unknown') ends[status].inc();
    if (wasLost) recovered.inc();
    if (durationMs !== null) runSeconds.observe(Math.max(0, durationMs) / 1000);
  };
  const settledUnlessMessage = ({ notifierId, settlement }: EventOf<'runSettled' | 'runCompleted'>) => {
    if (notifierId === null) settled(settlement);
  };
  return {
    runSettled: (event) => settledUnlessMessage(event),
    runCompleted: (event) => settledUnlessMessage(event),
    runsExpired: ({ runs }) => {
      expired.inc(runs.length);
      for (const { settlement } of runs) settled(settlement);
    },
    waitingExpired: ({ failed, unknown }) => {
      ends.failed.inc(failed);
      ends.unknown.inc(unknown);
    },
    dependentsFailed: ({ count }) => ends.failed.inc(count),
    runsAbandoned: ({ count }) => ends.abandoned.inc(count),
  };
}

function lostHandlers(registry: Registry, { unknown, abandoned }: EndCounters): Handlers {
  const { counter } = metricsIn(registry);
  const lost = counter(
    'firelock_runs_lost_total',
    'Times a run was found with a claim whose instance no longer acts on it; /api/v1/stats counts the runs.',
  );
  return {
    runsTakenOver: ({ runs: all }) => {
      const runs = all.filter(({ notifierId }) => notifierId === null);
      const count = (verdict: string) => runs.filter((run) => run.verdict === verdict).length;
      lost.inc(runs.length);
      unknown.inc(count('unknown'));
      abandoned.inc(runs.length - count('unknown') - count('again'));
    },
  };
}

function recordedHandlers(registry: Registry): Handlers {
  const { counter } = metricsIn(registry);
  const skipped = counter(
    'firelock_runs_skipped_total',
    'Runs recorded and not sent, by the policy of their schedule: missed, beyond the limit of catching up, overlapping, or expired.',
    'reason',
  );
  for (const reason of ['missed', 'limit', 'overlap', 'expired']) skipped.inc({ reason }, 0);
  const cancelled = counter('firelock_runs_cancelled_total', 'Runs called off.', 'reason');
  for (const reason of ['replaced', 'request']) cancelled.inc({ reason }, 0);
  const admitted = counter('firelock_runs_admitted_total', 'Runs that got a place of their limit.');
  const accepted = counter('firelock_runs_accepted_total', 'One-off runs recorded.');
  const retried = counter('firelock_runs_retried_total', 'Runs that had ended and were handed off again on request.');
  const intents = counter('firelock_intents_recorded_total', 'Fires planned and recorded.');
  const coalesced = counter('firelock_fires_coalesced_total', 'Missed fires that were folded into another run.');
  return {
    runsSkipped: ({ reason, count }) => skipped.inc({ reason }, count),
    runsCancelled: ({ reason, count }) => cancelled.inc({ reason }, count),
    runsAccepted: ({ count }) => accepted.inc(count),
    runRetried: () => retried.inc(),
    admissionPassed: (event) => admitted.inc(event.admitted),
    intentsRecorded: (event) => {
      intents.inc(event.fires);
      coalesced.inc(event.coalesced);
    },
  };
}

function attemptHandlers(registry: Registry): Handlers {
  const { counter, seconds } = metricsIn(registry);
  const handoffs = counter('firelock_handoffs_total', 'Attempts by kind of target and outcome.', 'target', 'outcome');
  const handoffSeconds = seconds(
    'firelock_handoff_duration_seconds',
    'One attempt, from name resolution to the last byte of the answer.',
    'target',
  );
  const cancelCalls = counter(
    'firelock_cancel_calls_total',
    'Targets that were to be told that a running run is cancelled or replaced, by whether they took it.',
    'outcome',
  );
  for (const outcome of ['accepted', 'failed']) cancelCalls.inc({ outcome }, 0);
  const lateness = seconds(
    'firelock_fire_lateness_seconds',
    'From the moment a fire was due to the start of its first attempt.',
  );
  const logBytes = counter('firelock_run_log_bytes_total', 'Bytes that were appended to the logs of runs.');
  const fenced = counter(
    'firelock_settlements_fenced_total',
    'Outcomes whose claim was gone when they were to be written.',
  );
  return {
    runStarted: ({ latenessMs }) => lateness.observe(Math.max(0, latenessMs) / 1000),
    pullRunsClaimed: ({ count }) => handoffs.inc({ target: 'pull', outcome: 'accepted' }, count),
    runLogAppended: ({ bytes }) => logBytes.inc(bytes),
    attemptEnded: ({ target, outcome, durationMs }) => {
      handoffs.inc({ target, outcome });
      handoffSeconds.observe(durationMs / 1000, target);
    },
    targetCancelled: ({ accepted }) => cancelCalls.inc({ outcome: accepted ? 'accepted' : 'failed' }),
    settlementFenced: ({ alreadyEnded }) => fenced.inc(alreadyEnded ? 0 : 1),
  };
}

function unmetHandlers(registry: Registry): Handlers {
  const { counter } = metricsIn(registry);
  const unmet = counter(
    'firelock_runs_unmet_total',
    'Bounds of expect that runs did not keep: start, finish, tooFast, result.',
    'bound',
  );
  for (const bound of BOUNDS) unmet.inc({ bound }, 0);
  return {
    runsUnmet: ({ runs }) => {
      for (const { bound } of runs) unmet.inc({ bound });
    },
  };
}

/** Messages of notifiers, which are runs, and count as such nowhere. */
export function messageHandlers(registry: Registry): Handlers {
  const { counter } = metricsIn(registry);
  const sent = counter('firelock_notifications_sent_total', 'Messages of notifiers that were delivered.');
  const failed = counter(
    'firelock_notifications_failed_total',
    'Messages of notifiers that ended without being delivered; /readyz and the log name the notifiers.',
  );
  const ended = ({ notifierId, settlement: { status } }: EventOf<'runSettled' | 'runCompleted'>) => {
    if (notifierId === null) return;
    if (status === 'succeeded') sent.inc();
    else if (status === 'failed' || status === 'unknown') failed.inc();
  };
  return {
    runSettled: ended,
    runCompleted: ended,
    runsTakenOver: ({ runs }) =>
      failed.inc(runs.filter(({ notifierId, verdict }) => notifierId !== null && verdict !== 'again').length),
  };
}
