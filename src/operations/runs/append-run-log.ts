/**
 * Guarantees: what an attempt appends to its log is written once, at the place that it names, as long as the run is with that attempt.
 * Transaction: one, under the run's row lock, taken by an earlier statement than the write.
 * If the process dies here: it is written or not; the same append again is answered alike.
 */
import { decideAppend } from '../../core/runs/run-decisions.ts';
import type { LogRoom } from '../../core/runs/run-log.ts';
import { mayBeRunId } from '../../core/runs/run.ts';
import type { EventBus } from '../../runtime/event-bus.ts';
import type { Database } from '../../postgres/database.ts';
import { type LogAppend, appendToLockedLog, lockLoggingRun } from '../../store/runs/logs/append-log.ts';
import type { RunSummary } from './act-on-runs.ts';

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
