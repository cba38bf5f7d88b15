import { z } from 'zod';
import { DEFAULT_RETRY, DEFAULT_TIMEOUT_SECONDS, DELIVERIES } from '../../core/schedule.ts';
import { CronError, LONGEST_EXPRESSION, cronTimes } from '../../core/time/cron.ts';
import { isZone } from '../../core/time/zone.ts';
import { answeredInstant, scheduleIdText, text } from './common.ts';
import { answeredTarget, targetInput, targetPatch } from './target.ts';
import { unsupported } from './unsupported.ts';

export const cronText = z
  .string()
  .superRefine((value, context) => {
    const fault = cronFault(value);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  })
  .meta({
    maxLength: LONGEST_EXPRESSION,
    description: 'A cron expression: 5 fields, or 6 with seconds first, or a nickname.',
    example: '0 2 * * *',
  });

export const zoneText = z.string().refine(isZone, { error: 'is not the IANA name of a time zone' }).meta({
  description: 'IANA name of the zone that `cron` is evaluated in; null = UTC.',
  example: 'Europe/Berlin',
});

const DAY = 86_400;
const backoffSeconds = z
  .number()
  .min(0)
  .max(7 * DAY);
const retryFields = {
  maxAttempts: z.int().min(1).max(100),
  minBackoffSeconds: backoffSeconds,
  maxBackoffSeconds: backoffSeconds,
};

const retryInput = z
  .strictObject({
    maxAttempts: retryFields.maxAttempts.default(DEFAULT_RETRY.maxAttempts),
    minBackoffSeconds: retryFields.minBackoffSeconds.default(DEFAULT_RETRY.minBackoffSeconds),
    maxBackoffSeconds: retryFields.maxBackoffSeconds.default(DEFAULT_RETRY.maxBackoffSeconds),
  })
  .meta({ id: 'Retry', description: 'wait = min · 2^(failures−1), capped at max, ±10 %.' });

const labelName = z.string().min(1).max(63);
const MOST_LABELS = 32;
const labels = z
  .record(labelName, text(255))
  .refine((value) => Object.keys(value).length <= MOST_LABELS, {
    error: `must be at most ${MOST_LABELS} labels`,
  })
  .meta({ maxProperties: MOST_LABELS, example: { team: 'billing' } });

const fields = {
  description: text(1000),
  cron: cronText,
  timezone: zoneText,
  enabled: z.boolean().meta({ description: 'false = paused.' }),
  payload: z.unknown().meta({
    description: 'Any JSON up to 64 KiB, carried in the handoff byte for byte.',
    example: { report: 'daily' },
  }),
  timeoutSeconds: z.number().min(1).max(3600).meta({
    description: 'One attempt, from name resolution to the last byte of the answer.',
  }),
  delivery: z.enum(DELIVERIES).meta({
    description:
      'After an attempt of unknown outcome (it may have arrived): atLeastOnce sends again, under the same run id; atMostOnce ' +
      'ends as `unknown` and never sends again, unless the `lookup` of the target settles it.',
  }),
  priority: z.enum(['high', 'normal', 'low']),
};

/** What this version does not bring, with the one value it has. */
export const UNSUPPORTED = {
  everySeconds: null,
  at: null,
  after: null,
  pauseReason: null,
  startAt: null,
  endAt: null,
  catchUp: 'latest',
  catchUpLimit: 100,
  graceSeconds: 60,
  overlap: 'allow',
  jitterSeconds: 0,
  completion: 'response',
  completionTimeoutSeconds: 3600,
} as const;

const unsupportedFields = {
  everySeconds: unsupported(UNSUPPORTED.everySeconds),
  at: unsupported(UNSUPPORTED.at),
  after: unsupported(UNSUPPORTED.after),
  pauseReason: unsupported(UNSUPPORTED.pauseReason),
  startAt: unsupported(UNSUPPORTED.startAt),
  endAt: unsupported(UNSUPPORTED.endAt),
  catchUp: unsupported(UNSUPPORTED.catchUp),
  catchUpLimit: unsupported(UNSUPPORTED.catchUpLimit),
  graceSeconds: unsupported(UNSUPPORTED.graceSeconds),
  overlap: unsupported(UNSUPPORTED.overlap),
  jitterSeconds: unsupported(UNSUPPORTED.jitterSeconds),
  completion: unsupported(UNSUPPORTED.completion),
  completionTimeoutSeconds: unsupported(UNSUPPORTED.completionTimeoutSeconds),
};

/** Accepted and ignored, so that what GET answered can be edited and sent back. */
const ignored = z.unknown().optional().meta({ readOnly: true });
const readOnlyFields = {
  status: ignored,
  error: ignored,
  nextFireAt: ignored,
  lastFireAt: ignored,
  lockedBy: ignored,
  lockedAt: ignored,
  version: ignored,
  createdAt: ignored,
  updatedAt: ignored,
};

const definitionInput = {
  description: fields.description.nullable().default(null),
  cron: fields.cron,
  timezone: fields.timezone.nullable().default(null),
  enabled: fields.enabled.default(true),
  target: targetInput,
  payload: fields.payload.optional(),
  retry: retryInput.prefault({}),
  timeoutSeconds: fields.timeoutSeconds.default(DEFAULT_TIMEOUT_SECONDS),
  delivery: fields.delivery.default('atLeastOnce'),
  priority: fields.priority.default('normal'),
  labels: labels.default({}),
  ...unsupportedFields,
  ...readOnlyFields,
};

export const scheduleInput = z
  .strictObject({ id: scheduleIdText.optional(), ...definitionInput })
  .meta({ id: 'ScheduleDefinition' });
export type ScheduleInput = z.output<typeof scheduleInput>;

export const batchInput = z.strictObject({
  items: z
    .array(z.strictObject({ id: scheduleIdText, ...definitionInput }).meta({ id: 'ScheduleWithId' }))
    .max(1000),
});

/** A merge patch is checked before it is merged, so that a fault is found without looking the schedule up. */
export const schedulePatch = z
  .strictObject({
    id: scheduleIdText.optional(),
    description: fields.description.nullish(),
    cron: fields.cron.optional(),
    timezone: fields.timezone.nullish(),
    enabled: fields.enabled.nullish(),
    target: targetPatch.optional(),
    payload: fields.payload.optional(),
    retry: z.strictObject(nullish(retryFields)).nullish(),
    timeoutSeconds: fields.timeoutSeconds.nullish(),
    delivery: fields.delivery.nullish(),
    priority: fields.priority.nullish(),
    labels: z.record(labelName, text(255).nullable()).nullish(),
    ...nullish(unsupportedFields),
    ...readOnlyFields,
  })
  .meta({ id: 'SchedulePatch', description: 'RFC 7396: null resets a field to its default.' });

export const schedule = z
  .object({
    id: scheduleIdText,
    description: fields.description.nullable(),
    cron: z.string(),
    everySeconds: z.null(),
    at: z.null(),
    after: z.null(),
    timezone: z.string().nullable(),
    enabled: fields.enabled,
    pauseReason: z.null(),
    startAt: z.null(),
    endAt: z.null(),
    target: answeredTarget,
    payload: fields.payload,
    catchUp: z.literal('latest'),
    catchUpLimit: z.literal(100),
    graceSeconds: z.literal(60),
    overlap: z.literal('allow'),
    jitterSeconds: z.literal(0),
    retry: z.object(retryFields),
    timeoutSeconds: fields.timeoutSeconds,
    completion: z.literal('response'),
    completionTimeoutSeconds: z.literal(3600),
    delivery: fields.delivery,
    priority: fields.priority,
    labels: z.record(z.string(), z.string()),
    status: z.enum(['active', 'paused', 'ended', 'error']),
    error: z.string().nullable().meta({ description: 'Why it cannot be planned.' }),
    nextFireAt: answeredInstant.nullable(),
    lastFireAt: answeredInstant.nullable(),
    lockedBy: z.string().nullable(),
    lockedAt: answeredInstant.nullable(),
    version: z.int(),
    createdAt: answeredInstant,
    updatedAt: answeredInstant,
  })
  .meta({ id: 'Schedule' });

function nullish<Shape extends Record<string, z.ZodType>>(shape: Shape) {
  return Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, field.nullish()])) as {
    [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>>;
  };
}

function cronFault(expression: string): string | null {
  try {
    cronTimes(expression, null);
    return null;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}
