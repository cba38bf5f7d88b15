import { z } from 'zod';
import {
  COMPLETIONS,
  DEFAULT_RETRY,
  DELIVERIES,
  MAX_COMPLETION_TIMEOUT_SECONDS,
  MAX_EXPIRES_AFTER_SECONDS,
  NO_DEFINITION,
} from '../../core/schedules/schedule.ts';
import { limitIdText, nullish, whole, withDefaults } from '../http/common-schemas.ts';
import { answeredTarget, targetInput, targetPatch } from './schemas.ts';

const backoffSeconds = z
  .number()
  .min(0)
  .max(7 * 86_400);
const retry = {
  maxAttempts: whole(1, 100),
  minBackoffSeconds: backoffSeconds,
  maxBackoffSeconds: backoffSeconds,
};

const payload = z.unknown().meta({
  description: 'Any JSON up to 64 KiB, carried in the handoff byte for byte.',
  example: { report: 'daily' },
});

const fields = {
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
};

const expiresAfterSeconds = whole(1, MAX_EXPIRES_AFTER_SECONDS).meta({
  description:
    'A run that has not begun so long after it was due is `skipped`, reason `expired`; one that waits to be tried again ends ' +
    '`failed`, kind `expired`. `/retry` and backfill give it the same time anew. Null: it may wait however long. At most 31 days.',
  example: 3600,
});

const { priority, ...handed } = fields;

/** With defaults: the fields about the handoff that schedules and one-off runs share. */
export const handoffInput = {
  target: targetInput,
  payload: payload.optional(),
  retry: z
    .strictObject(withDefaults(retry, DEFAULT_RETRY))
    .meta({ id: 'Retry', description: 'wait = min · 2^(failures−1), capped at max, ±10 %.' })
    .prefault({}),
  ...withDefaults(handed, NO_DEFINITION),
};
export const turnInput = {
  priority: priority.default('normal'),
  limit: limitIdText.nullable().default(null),
  expiresAfterSeconds: expiresAfterSeconds.nullable().default(null),
};

export const handoffPatch = {
  target: targetPatch.optional(),
  payload: payload.optional(),
  retry: z.strictObject(nullish(retry)).nullish(),
  ...nullish({ ...fields, limit: limitIdText, expiresAfterSeconds }),
};

export const handoffAnswer = {
  target: answeredTarget,
  payload,
  retry: z.object(retry),
  ...fields,
  limit: limitIdText.nullable(),
  expiresAfterSeconds: expiresAfterSeconds.nullable(),
};
