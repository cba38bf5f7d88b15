import { z } from 'zod';
import { LOOKUP_ANSWERS } from '../../core/runs/attempts/outcome.ts';
import { PAYLOAD_SOURCES } from '../../core/runs/run.ts';
import { answeredInstant } from '../http/common-schemas.ts';
import { expectBound, runStatus, runTrigger } from '../http/word-schemas.ts';
import { answeredTarget } from '../targets/schemas.ts';

export const attemptError = z
  .object({
    kind: z.enum(['http', 'timeout', 'network', 'blocked', 'expired', 'dependency', 'reported', 'body']),
    message: z.string(),
    statusCode: z.int().optional(),
  })
  .meta({ id: 'AttemptError' });

export const runResult = z.object({
  statusCode: z.int().nullable().meta({
    description:
      'Of the last answer to a handoff. Null: the body was reported with the end, or nothing was answered.',
  }),
  body: z.string().meta({ description: 'Text, cut at 4 KiB.' }),
});

export const runFields = {
  id: z.string().meta({ format: 'uuid' }),
  name: z.string().nullable().meta({ description: '`scheduleId@scheduledFor` for planned fires.' }),
  scheduleId: z.string().nullable().meta({ description: 'Null: a one-off run, or a message of a notifier.' }),
  scheduleVersion: z
    .int()
    .nullable()
    .meta({ description: 'By which its attempts go. Null: it is of no schedule.' }),
  scheduledFor: answeredInstant.meta({
    description: 'The fire time that it stands for; of a one-off run: its `runAt`, or when it was accepted.',
  }),
  trigger: runTrigger.meta({ description: '`notify`: a message of a notifier.' }),
  status: runStatus,
  reason: z.string().nullable(),
  attempts: z.int().meta({ description: 'Starts of an attempt; never lowered: the fencing token.' }),
  failures: z.int(),
  recoveries: z.int(),
  lostAt: answeredInstant
    .nullable()
    .meta({ description: 'First found with a claim that no instance acted on; null: never.' }),
  inDoubtUntil: answeredInstant.nullable().meta({
    description:
      'An attempt may have arrived, and the target is asked; at most once, a 404 counts from then on. Null: no doubt.',
  }),
  nextAttemptAt: answeredInstant.nullable(),
  expiresAt: answeredInstant.nullable().meta({
    description: 'No attempt of it begins later (`expiresAfterSeconds`). Null: it may wait however long.',
  }),
  coalesced: z.int().meta({ description: 'How many other fire times this record stands for.' }),
  coalescedFrom: answeredInstant.nullable(),
  claimedBy: z.string().nullable(),
  claimedAt: answeredInstant.nullable(),
  handoffStartedAt: answeredInstant.nullable(),
  handedOffAt: answeredInstant.nullable(),
  finishedAt: answeredInstant.nullable(),
  latenessMs: z.int().nullable(),
  executionId: z.string().nullable(),
  result: runResult
    .nullable()
    .meta({ description: 'The last answer of its target, or the result reported with `/complete`.' }),
  error: attemptError.nullable().meta({
    description: 'Of a fire that somebody had skipped: why, in their words (`reported`).',
  }),
  key: z.string().nullable().meta({
    description: 'Of the client: the `key` of a one-off run, or the `Idempotency-Key` of a fire.',
  }),
  batchId: z.string().nullable().meta({ description: 'Of a one-off run that was asked for with others.' }),
  ref: z.string().nullable().meta({ description: 'Its name in the batch.' }),
  labels: z.record(z.string(), z.string()).meta({
    description: 'Of a one-off run: its own. Of a run of a schedule: that one’s, as they are now.',
  }),
  payload: z.unknown(),
  payloadFrom: z.enum(PAYLOAD_SOURCES).meta({
    description:
      '`schedule`: its schedule has the payload, which an admin wrote. `request`: it came with the call that made the run, by an operator.',
  }),
  priority: z.enum(['high', 'normal', 'low']),
  limit: z.string().nullable().meta({ description: 'The limit that it counts against. Null: none.' }),
  dependsOn: z
    .array(z.string())
    .meta({ description: 'Ids of the runs that have to end before it starts, as they were listed.' }),
  dependents: z
    .array(z.string())
    .meta({ description: 'Ids of the runs that depend on this one: the first 1000.' }),
  parentRunId: z.string().nullable().meta({ description: 'Whose end made it: of `after` schedules.' }),
  notifierId: z
    .string()
    .nullable()
    .meta({ description: 'The notifier whose message it is. Null: it is none.' }),
  queue: z.string().nullable().meta({ description: 'Where workers claim it. Null: it is sent.' }),
  workerId: z.string().nullable().meta({ description: 'The worker that claimed it last.' }),
  leaseUntil: answeredInstant.nullable().meta({
    description: 'While it is leased by a worker: until when that one must `/heartbeat` or `/complete`.',
  }),
  completionDueAt: answeredInstant.nullable().meta({
    description: 'While its completion is awaited: until when `/heartbeat` or `/complete` must come.',
  }),
  progress: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .meta({ description: 'How much of it is done, by the last `/heartbeat`.' }),
  observed: z.boolean().meta({
    description: 'Nothing was sent: another scheduler runs the job, which reports.',
    example: false,
  }),
  unmet: z.array(expectBound).meta({ description: 'Bounds of `expect` that did not hold.', example: [] }),
  unmetReason: z
    .string()
    .nullable()
    .meta({ description: 'Why its `result` did not hold. Null: it did, or nothing is expected of it.' }),
  createdAt: answeredInstant,
  updatedAt: answeredInstant,
};

export const run = z
  .object(runFields)
  .meta({ id: 'Run', description: 'The durable record of one fire, or of one one-off task.' });

export const attempt = z
  .object({
    attempt: z.int(),
    instanceId: z.string(),
    startedAt: answeredInstant,
    finishedAt: answeredInstant,
    outcome: z.enum(['accepted', 'acceptedLate', 'rejected', 'transient', 'unknown', 'blocked']).meta({
      description:
        '`acceptedLate`: a 2xx that came when the run had ended otherwise; it changes nothing but this log.',
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
    target: answeredTarget.nullable().meta({
      description: 'Of the version it runs by. Null: that cannot be read, or it is mail of a notifier.',
    }),
    attemptLog: z.array(attempt),
  })
  .meta({ id: 'WholeRun' });
