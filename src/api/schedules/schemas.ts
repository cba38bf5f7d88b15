import { z } from 'zod';
import {
  COMPLETIONS,
  DEFAULT_COMPLETION_TIMEOUT_SECONDS,
  DEFAULT_RETRY,
  DEFAULT_TIMEOUT_SECONDS,
  DELIVERIES,
  MAX_COMPLETION_TIMEOUT_SECONDS,
} from '../../core/schedules/schedule.ts';
import { atMostOneOf, exactlyOneOf } from '../document/kinds.ts';
import { MAX_ITEMS } from '../http/json/json-parts.ts';
import { answeredInstant, limitIdText, scheduleIdText, text, whole } from '../http/common-schemas.ts';
import { pauseAnswer, pauseInput, pausePatch } from './timing/pause-schemas.ts';
import { answeredTarget, targetInput, targetPatch } from '../targets/schemas.ts';
import {
  ALWAYS,
  atMostOneKind,
  exactlyOneKind,
  timingAnswer,
  timingInput,
  timingPatch,
} from './timing/timing-schemas.ts';

const DAY = 86_400;
const backoffSeconds = z
  .number()
  .min(0)
  .max(7 * DAY);
const retryFields = {
  maxAttempts: whole(1, 100),
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
const MAX_LABELS = 32;
const labels = z
  .record(labelName, text(255))
  .refine((value) => Object.keys(value).length <= MAX_LABELS, {
    error: `must be at most ${MAX_LABELS} labels`,
  })
  .meta({ maxProperties: MAX_LABELS, example: { team: 'billing' } });

const fields = {
  description: text(1000),
  enabled: z.boolean().meta({ description: 'false = paused.' }),
  payload: z.unknown().meta({
    description: 'Any JSON up to 64 KiB, carried in the handoff byte for byte.',
    example: { report: 'daily' },
  }),
  timeoutSeconds: z.number().min(1).max(3600).meta({
    description: 'One attempt, from name resolution to the last byte of the answer.',
  }),
  completion: z.enum(COMPLETIONS).meta({
    description:
      'response: a 2xx ends the run. callback: a 2xx means accepted, and the run is `running` until `/complete` says how it ended.',
  }),
  completionTimeoutSeconds: z.number().min(1).max(MAX_COMPLETION_TIMEOUT_SECONDS).meta({
    description:
      'Of `callback`: after that long without `/heartbeat` or `/complete` the outcome is unknown. At most 31 days.',
  }),
  delivery: z.enum(DELIVERIES).meta({
    description:
      'After an attempt of unknown outcome (it may have arrived): atLeastOnce sends again, under the same run id; atMostOnce ' +
      'ends as `unknown` and never sends again, unless the `lookup` of the target settles it.',
  }),
  priority: z.enum(['high', 'normal', 'low']),
  limit: limitIdText,
};

/** Accepted and ignored, so that a caller can edit the answer of GET and send it back. */
const ignored = z.unknown().optional().meta({ readOnly: true });
const readOnlyFields = {
  status: ignored,
  late: ignored,
  error: ignored,
  nextFireAt: ignored,
  lastFireAt: ignored,
  lockedBy: ignored,
  lockedAt: ignored,
  version: ignored,
  createdAt: ignored,
  updatedAt: ignored,
};

/** With defaults: the fields about the handoff that schedules and one-off runs share. */
export const handoffInput = {
  target: targetInput,
  payload: fields.payload.optional(),
  retry: retryInput.prefault({}),
  timeoutSeconds: fields.timeoutSeconds.default(DEFAULT_TIMEOUT_SECONDS),
  completion: fields.completion.default('response'),
  completionTimeoutSeconds: fields.completionTimeoutSeconds.default(DEFAULT_COMPLETION_TIMEOUT_SECONDS),
  delivery: fields.delivery.default('atLeastOnce'),
};
export const priorityInput = fields.priority.default('normal');
export const limitNameInput = fields.limit.nullable().default(null);

const definitionInput = {
  description: fields.description.nullable().default(null),
  ...timingInput,
  enabled: fields.enabled.default(true),
  ...pauseInput,
  ...handoffInput,
  priority: priorityInput,
  limit: limitNameInput,
  labels: labels.default({}),
  ...readOnlyFields,
};

const ONE_OF_FOUR = 'Exactly one of `cron`, `everySeconds`, `at` and `after` says when it fires.';

export const scheduleInput = z
  .strictObject({ id: scheduleIdText.optional(), ...definitionInput })
  .superRefine(exactlyOneKind, ALWAYS)
  .meta({
    id: 'ScheduleDefinition',
    description: ONE_OF_FOUR,
    ...exactlyOneOf(),
  });
export type ScheduleInput = z.output<typeof scheduleInput>;

/** Of a batch. */
export const itemInput = z
  .strictObject({ id: scheduleIdText, ...definitionInput })
  .superRefine(exactlyOneKind, ALWAYS)
  .meta({ id: 'ScheduleWithId', description: ONE_OF_FOUR, ...exactlyOneOf() });

/** The fields beside the items of a batch. */
export const besideItems = {
  dryRun: z.boolean().default(false).meta({
    description: 'Change nothing, and answer what would change. It is refused as the call itself would be.',
  }),
};

export const batchInput = z.strictObject({ items: z.array(itemInput).max(MAX_ITEMS), ...besideItems });

/** A merge patch is checked before it is merged, so that a fault is found without looking the schedule up. */
export const schedulePatch = z
  .strictObject({
    id: scheduleIdText.optional(),
    description: fields.description.nullish(),
    ...timingPatch,
    enabled: fields.enabled.nullish(),
    ...pausePatch,
    target: targetPatch.optional(),
    payload: fields.payload.optional(),
    retry: z.strictObject(nullish(retryFields)).nullish(),
    timeoutSeconds: fields.timeoutSeconds.nullish(),
    completion: fields.completion.nullish(),
    completionTimeoutSeconds: fields.completionTimeoutSeconds.nullish(),
    delivery: fields.delivery.nullish(),
    priority: fields.priority.nullish(),
    limit: fields.limit.nullish(),
    labels: z.record(labelName, text(255).nullable()).nullish(),
    ...readOnlyFields,
  })
  .superRefine(atMostOneKind, ALWAYS)
  .meta({
    id: 'SchedulePatch',
    description:
      'RFC 7396: null resets a field to its default. Naming another of `cron`, `everySeconds`, `at` and `after` takes the old one away.',
    ...atMostOneOf(),
  });

export const schedule = z
  .object({
    id: scheduleIdText,
    description: fields.description.nullable(),
    ...timingAnswer,
    enabled: fields.enabled,
    ...pauseAnswer,
    target: answeredTarget,
    payload: fields.payload,
    retry: z.object(retryFields),
    timeoutSeconds: fields.timeoutSeconds,
    completion: fields.completion,
    completionTimeoutSeconds: fields.completionTimeoutSeconds,
    delivery: fields.delivery,
    priority: fields.priority,
    limit: fields.limit.nullable(),
    labels: z.record(z.string(), z.string()),
    status: z.enum(['active', 'paused', 'ended', 'error']).meta({
      description: '`ended`: nothing is left to fire; `error`: it cannot be planned, and `error` says why.',
    }),
    late: z.boolean().meta({
      description: 'No run has succeeded within `successWithinSeconds`; never of a paused or ended one.',
    }),
    error: z.string().nullable().meta({ description: 'Why it cannot be planned.' }),
    nextFireAt: answeredInstant.nullable().meta({
      description: 'With its jitter; null unless active. Fires that are to be skipped are passed over.',
    }),
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
