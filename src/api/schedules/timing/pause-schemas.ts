import { MAX_INTERVAL_SECONDS } from '../../../core/schedules/schedule.ts';
import { answeredInstant, instant, text, whole } from '../../http/common-schemas.ts';

const fields = {
  pauseReason: text(1000).meta({
    description:
      'Why it is paused: set by hand, or by the daemon where the target answered 410 Gone or too many runs failed. Null whenever `enabled` is true.',
  }),
  pauseUntil: instant.meta({
    description:
      'The pause ends by itself at this moment: only with `enabled: false`, and in the future. What lay between was paused. Null ' +
      'whenever `enabled` is true.',
    example: null,
  }),
  pauseAfterFailures: whole(1, 1000).meta({
    description:
      'So many runs in a row that ended `failed`, `unknown` or `abandoned` pause the schedule. A success begins anew; `cancelled` and ' +
      '`skipped` do not count.',
    example: null,
  }),
  successWithinSeconds: whole(60, MAX_INTERVAL_SECONDS).meta({
    description:
      'Without a success for that long the schedule is `late`: since the last one, or since it was created, resumed or given this.',
    example: null,
  }),
};

export const pauseInput = {
  pauseReason: fields.pauseReason.nullable().default(null),
  pauseUntil: fields.pauseUntil.nullable().default(null),
  pauseAfterFailures: fields.pauseAfterFailures.nullable().default(null),
  successWithinSeconds: fields.successWithinSeconds.nullable().default(null),
};

export const pausePatch = {
  pauseReason: fields.pauseReason.nullish(),
  pauseUntil: fields.pauseUntil.nullish(),
  pauseAfterFailures: fields.pauseAfterFailures.nullish(),
  successWithinSeconds: fields.successWithinSeconds.nullish(),
};

export const pauseAnswer = {
  pauseReason: fields.pauseReason.nullable(),
  pauseUntil: answeredInstant
    .nullable()
    .meta({ description: 'When its pause ends by itself.', example: null }),
  pauseAfterFailures: fields.pauseAfterFailures.nullable(),
  successWithinSeconds: fields.successWithinSeconds.nullable(),
};
