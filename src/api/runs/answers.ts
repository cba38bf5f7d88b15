import type { z } from 'zod';
import type { AttemptEntry } from '../../core/runs/attempts/outcome.ts';
import { type Run, attemptLogOf, runNameOf } from '../../core/runs/run.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import { answersOf } from '../http/stored-answers.ts';
import { attempt, run, type wholeRun } from './schemas.ts';
import { answerTarget } from '../targets/answers.ts';

const answered = answersOf(run);

export function answerRun(stored: Run): z.output<typeof run> {
  return answered({
    ...stored,
    ...awaited(stored),
    name: runNameOf(stored),
    expiresAt: stored.beginBy,
    limit: stored.limitId,
    payload: rawJsonOrNull(stored.payload),
  });
}

export function answerWholeRun(
  stored: Run,
  { target }: { target: HandoffTarget | null },
): z.output<typeof wholeRun> {
  const attemptLog = attemptLogOf(stored).map(answerAttempt);
  return { ...answerRun(stored), target: target && answerHandoffTarget(target), attemptLog };
}

/** Mail is what a notifier says of itself. */
function answerHandoffTarget(target: HandoffTarget) {
  return target.type === 'email' ? null : answerTarget(target);
}

/** Until when a heartbeat or an end must come, from the worker or from the job that the target started. */
function awaited({ status, observed, queue, expiresAt }: Run) {
  const until = status === 'running' || observed ? expiresAt : null;
  return { leaseUntil: queue === null ? null : until, completionDueAt: queue === null ? until : null };
}

const answeredAttempt = answersOf(attempt);

/** Without what there is not. */
function answerAttempt({ statusCode, error, lookup, ...entry }: AttemptEntry): z.output<typeof attempt> {
  const found = {
    statusCode: statusCode ?? undefined,
    error: error ?? undefined,
    lookup: lookup ?? undefined,
  };
  return answeredAttempt({ ...entry, ...found });
}
