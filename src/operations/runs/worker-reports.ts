/**
 * Guarantees: what a worker cannot do now is done again later: at once and at no cost where it was not begun, else by the retry policy of
 *   its version; the same word twice counts once.
 * Transaction: one, under the run's row lock.
 * If the process dies here: it is done or not; asking again answers the same.
 */
import { type AttemptError, notSent } from '../../core/runs/attempts/outcome.ts';
import { settlementOf } from '../../core/runs/attempts/settlement.ts';
import { expireRun } from '../../core/runs/expire-run.ts';
import { type Speaker, decideRelease, decideTransient, decideAppend } from '../../core/runs/run-decisions.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { endAsReported } from '../../core/runs/transitions.ts';
import { type Handoff, NO_DEFINITION } from '../../core/schedules/schedule.ts';
import { scheduleIdOf } from '../../postgres/sql/rows.ts';
import { takeBackIfStillLeased } from '../../store/queues/pull-claims.ts';
import { hasRunLog, type LogAppend, appendToLockedLog, lockLoggingRun } from '../../store/runs/logs/append-log.ts';
import { loadHandoffs, versionKey } from '../../store/schedules/schedule-versions.ts';
import { type ActionResult, type CompletionReport, type RunActionDeps, act, type RunSummary } from './act-on-runs.ts';
import { settledOf } from './settled-by-report.ts';
import type { LogRoom } from '../../core/runs/run-log.ts';
import { mayBeRunId } from '../../core/runs/run.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Database } from '../../postgres/database.ts';

/** Of a claimed run that its worker has not begun: it is as if it had not been claimed, but the number of the attempt is used up. */
export function giveBackRun(deps: RunActionDeps, id: string, speaker: Speaker): Promise<ActionResult> {
  return act(deps, id, {
    audited: 'run.release',
    read: (tx, run) => hasRunLog(tx, id, run.attempts),
    detail: ({ attempts: attempt }) => ({ attempt }),
    decide: (run, _, hasLog) => decideRelease(run, { ...speaker, hasLog }),
    change: (from) => ({ from, to: { ...from, status: 'pending' } }),
    save: async (tx, { from }) => {
      const isFirst = from.firstClaimedAt === from.claimedAt;
      await takeBackIfStillLeased(tx, [{ run: from, isFirst }]);
      return 0;
    },
    emit: () => undefined,
  });
}

type TransientReport = Omit<CompletionReport, 'status'>;

/**
 * The report of a failure that passes: it counts, and leads to another attempt as long as `maxAttempts` allows. Under at-most-once it
 * ends the run: its reporter has taken it, so part of the work may be done.
 */
export function failForNow(deps: RunActionDeps, id: string, word: TransientReport): Promise<ActionResult> {
  return act(deps, id, {
    audited: 'run.complete',
    read: async (tx, run) => (await loadHandoffs(tx, [run])).get(versionKey(run)),
    decide: (run) => decideTransient(run, word),
    detail: ({ attempts: attempt }) => ({ status: 'failed', retry: true, attempt }),
    change: (from, { error }, { now, known: handoff }) => ({
      from,
      to: failedForNow(from, { error, word, handoff, now }),
    }),
    emit: (events, from, to) => {
      const { notifierId, attempts: attempt, scheduleId } = from;
      const isPending = to.status === 'pending';
      const settled = settledOf(from, { ...to, finishedAt: to.finishedAt ?? 0 });
      const settlement = isPending ? { ...settled, durationMs: null, retryAt: to.dueAt, recovered: false } : settled;
      events.emit({
        ...{ type: 'runCompleted', runId: id, scheduleId: scheduleIdOf(scheduleId) },
        ...{ notifierId, attempt, settlement },
      });
    },
  });
}

interface Failed {
  error: AttemptError | null;
  word: TransientReport;
  /** Of the run's version; undefined: it cannot be read. */
  handoff: Handoff | undefined;
  now: number;
}

function failedForNow(run: RunRecord, { error, word: { result }, handoff, now }: Failed): RunRecord {
  const failed = { status: 'failed', error, result } as const;
  const policy = { ...NO_DEFINITION, ...handoff };
  // An observed run has no further attempt.
  if (run.observed || run.status === 'unknown' || policy.delivery === 'atMostOnce')
    return endAsReported(run, failed, now);
  const said = error ?? { kind: 'reported', message: 'reported as failed' };
  const outcome = { ...notSent(said), body: result };
  const startedAt = run.handoffStartedAt ?? now;
  const attempted = {
    ...{ failures: run.failures, startedAt, hasLookup: false, giveUpAt: null, doubt: null },
    wasHandedOff: true,
  };
  const settlement = settlementOf(outcome, { ...policy, ...attempted }, now, Math.random());
  const { failures } = settlement;
  if (settlement.status === 'failed') return { ...endAsReported(run, failed, now), failures };
  return { ...expireRun(run, settlement, now, 'transient'), resultStatusCode: null, resultBody: result };
}

interface AppendDeps {
  database: Database;
  events: EventBus;
  room: LogRoom;
}

type AppendResult =
  /** Where what comes next begins. */
  | { kind: 'done'; offset: number }
  | { kind: 'noSuchRun' }
  | { kind: 'notPossible'; message: string; summary: RunSummary };

/** `workerId`: null, it does not say which worker it is. */
export async function appendRunLog(
  { database, events, room }: AppendDeps,
  id: string,
  append: LogAppend & { workerId: string | null },
): Promise<AppendResult> {
  if (!mayBeRunId(id)) return { kind: 'noSuchRun' };
  const { attempt, offset, bytes } = append;
  const { result, written } = await database.transaction(
    async (tx): Promise<{ result: AppendResult; written: number }> => {
      const run = await lockLoggingRun(tx, id);
      if (!run) return { result: { kind: 'noSuchRun' }, written: 0 };
      const decision = decideAppend(run, append, run.endedMsAgo);
      if (decision.kind === 'notPossible') {
        const { status, reason, attempts } = run;
        return { result: { ...decision, summary: { status, reason, attempts } }, written: 0 };
      }
      return {
        result: { kind: 'done', offset: offset + bytes.length },
        written: await appendToLockedLog(tx, id, append, room),
      };
    },
  );
  if (result.kind === 'done') events.emit({ type: 'runLogAppended', runId: id, attempt, bytes: written });
  return result;
}
