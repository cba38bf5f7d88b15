import { z } from 'zod';
import { type AttemptEntry, LOOKUP_ANSWERS } from '../../core/runs/attempts/outcome.ts';
import { type Run, attemptLogOf, PAYLOAD_SOURCES, runNameOf } from '../../core/runs/run.ts';
import { answeredInstant, expectBound, runStatus, runTrigger } from '../http/common-schemas.ts';
import { answeredTarget } from '../targets/schemas.ts';
import type { HandoffTarget } from '../../core/schedules/schedule.ts';
import { rawJsonOrNull } from '../http/json/raw-json.ts';
import { answersOf } from '../http/routes.ts';
import { answerTarget } from '../targets/answers.ts';

export const attemptError = z
  .object({
    kind: z.enum(['http', 'timeout', 'network', 'blocked', 'expired', 'dependency', 'reported', 'body']),
    message: z.string(),
    statusCode: z.int().optional(),
  })
  .meta({ id: 'AttemptError' });

export const runResult = z.object({
  statusCode: z.int().nullable().meta({
    description: 'Of the last answer to a handoff. Null: the body was reported with the end, or nothing was answered.',
  }),
  body: z.string().describe('Text, cut at 4 KiB.'),
});

export const runFields = {
  id: z.string().meta({ format: 'uuid' }),
  name: z.string().nullable().describe('`scheduleId@scheduledFor` for planned fires.'),
  scheduleId: z.string().nullable().describe('Null: a one-off run, or a message of a notifier.'),
  scheduleVersion: z.int().nullable().describe('By which its attempts go. Null: it is of no schedule.'),
  scheduledFor: answeredInstant.describe(
    'The fire time that it stands for; of a one-off run: its `runAt`, or when it was accepted.',
  ),
  trigger: runTrigger.describe('`notify`: a message of a notifier.'),
  status: runStatus,
  reason: z.string().nullable(),
  attempts: z.int().describe('Starts of an attempt; never lowered: the fencing token.'),
  failures: z.int(),
  recoveries: z.int(),
  lostAt: answeredInstant.nullable().describe('First found with a claim that no instance acted on; null: never.'),
  inDoubtUntil: answeredInstant.nullable().meta({
    description:
      'An attempt may have arrived, and the target is asked; at most once, a 404 counts from then on. Null: no doubt.',
  }),
  nextAttemptAt: answeredInstant.nullable(),
  expiresAt: answeredInstant
    .nullable()
    .describe('No attempt of it begins later (`expiresAfterSeconds`). Null: it may wait however long.'),
  coalesced: z.int().describe('How many other fire times this record stands for.'),
  coalescedFrom: answeredInstant.nullable(),
  claimedBy: z.string().nullable(),
  claimedAt: answeredInstant.nullable(),
  handoffStartedAt: answeredInstant.nullable(),
  handedOffAt: answeredInstant.nullable(),
  finishedAt: answeredInstant.nullable(),
  latenessMs: z.int().nullable(),
  executionId: z.string().nullable(),
  result: runResult.nullable().describe('The last answer of its target, or the result reported with `/complete`.'),
  error: attemptError.nullable().describe('Of a fire that somebody had skipped: why, in their words (`reported`).'),
  key: z.string().nullable().meta({
    description: 'Of the client: the `key` of a one-off run, or the `Idempotency-Key` of a fire.',
  }),
  batchId: z.string().nullable().describe('Of a one-off run that was asked for with others.'),
  ref: z.string().nullable().describe('Its name in the batch.'),
  labels: z
    .record(z.string(), z.string())
    .describe('Of a one-off run: its own. Of a run of a schedule: that one’s, as they are now.'),
  payload: z.unknown(),
  payloadFrom: z.enum(PAYLOAD_SOURCES).meta({
    description:
      '`schedule`: its schedule has the payload, which an admin wrote. `request`: it came with the call that made the run, by an operator.',
  }),
  priority: z.enum(['high', 'normal', 'low']),
  limit: z.string().nullable().describe('The limit that it counts against. Null: none.'),
  dependsOn: z.array(z.string()).describe('Ids of the runs that have to end before it starts, as they were listed.'),
  dependents: z.array(z.string()).describe('Ids of the runs that depend on this one: the first 1000.'),
  parentRunId: z.string().nullable().describe('Whose end made it: of `after` schedules.'),
  notifierId: z.string().nullable().describe('The notifier whose message it is. Null: it is none.'),
  queue: z.string().nullable().describe('Where workers claim it. Null: it is sent.'),
  workerId: z.string().nullable().describe('The worker that claimed it last.'),
  leaseUntil: answeredInstant
    .nullable()
    .describe('While it is leased by a worker: until when that one must `/heartbeat` or `/complete`.'),
  completionDueAt: answeredInstant
    .nullable()
    .describe('While its completion is awaited: until when `/heartbeat` or `/complete` must come.'),
  progress: z.number().min(0).max(1).nullable().describe('How much of it is done, by the last `/heartbeat`.'),
  observed: z.boolean().meta({
    description: 'Nothing was sent: another scheduler runs the job, which reports.',
    example: false,
  }),
  unmet: z.array(expectBound).meta({ description: 'Bounds of `expect` that did not hold.', example: [] }),
  unmetReason: z
    .string()
    .nullable()
    .describe('Why its `result` did not hold. Null: it did, or nothing is expected of it.'),
  createdAt: answeredInstant,
  updatedAt: answeredInstant,
};

export const run = z
  .object(runFields)
  .meta({ id: 'Run', description: 'The durable record of one fire, or of one one-off task.' });

const attempt = z
  .object({
    attempt: z.int(),
    instanceId: z.string(),
    startedAt: answeredInstant,
    finishedAt: answeredInstant,
    outcome: z.enum(['accepted', 'acceptedLate', 'rejected', 'transient', 'unknown', 'blocked']).meta({
      description: '`acceptedLate`: a 2xx that came when the run had ended otherwise; it changes nothing but this log.',
    }),
    statusCode: z.int().optional(),
    error: attemptError.optional(),
    recovery: z.boolean(),
    lookup: z.enum(LOOKUP_ANSWERS).optional().meta({
      description:
        'What the target said of an earlier attempt, asked before anything else was done. `arrived`: nothing was sent this time.',
    }),
  })
  .meta({ id: 'Attempt' });

export const wholeRun = z
  .object({
    ...runFields,
    target: answeredTarget
      .nullable()
      .describe('Of the version it runs by. Null: that cannot be read, or it is mail of a notifier.'),
    attemptLog: z.array(attempt),
  })
  .meta({ id: 'WholeRun' });

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

export function answerWholeRun(stored: Run, { target }: { target: HandoffTarget | null }): z.output<typeof wholeRun> {
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
