import { z } from 'zod';
import { OVERLAPS } from '../../core/schedules/schedule.ts';
import { MAX_INTERVAL_SECONDS } from '../../core/instant.ts';
import { type FollowedEnd, type Timing, CATCH_UPS, DEFAULT_TIMING, FOLLOWED_ENDS } from '../../core/timing/timing.ts';
import { secondsOf } from '../../core/cron/foreign/foreign-forms.ts';
import { zoneHint } from '../../core/zones/zone.ts';
import { isObject } from '../http/json/json-body.ts';
import {
  NO_SCHEDULE_ID,
  answeredInstant,
  instant,
  nullish,
  orNull,
  whole,
  withoutFault,
  withDefaults,
} from '../http/common-schemas.ts';
import { answeredCron, cronInput, isKnownZone } from './cron-schemas.ts';
import {
  every,
  everyPatch,
  onExcluded,
  pick,
  pickPatch,
  refuseDayRules,
  answeredExclude,
  excludeInput,
  excludePatch,
  refuseExcludeBesideAfter,
} from './day-schemas.ts';

/** A schedule has exactly one of these kinds. */
export const TIMING_KINDS = ['cron', 'everySeconds', 'at', 'after'] as const satisfies readonly (keyof Timing)[];

const DAY = 86_400;

export const zoneText = z.string().superRefine(withoutFault(zoneFault)).meta({
  format: 'time-zone',
  description: 'IANA name of the zone that `cron` is evaluated in, and whose days `exclude` names; null = UTC.',
  example: 'Europe/Berlin',
});

export const everySeconds = whole(1, MAX_INTERVAL_SECONDS, secondsInstead).meta({
  description:
    'An interval. Fires stand at `startAt` + n × `everySeconds`, the first at `startAt`; without it at the creation + n × ' +
    '`everySeconds`, the first one interval after the creation. They never drift.',
  example: 900,
});

const parent = z
  .string()
  .regex(/^(?:\*|[A-Za-z0-9][A-Za-z0-9._-]{0,127}\*?)$/, {
    error: `${NO_SCHEDULE_ID}; or be the beginning of ids and a *`,
  })
  .meta({
    description:
      'Whose runs it follows: of one schedule; or, with a beginning of ids and a `*` (`billing.*`), of every such schedule that is ' +
      'not itself an `after` schedule. `*`: of every one.',
    example: 'nightly-report',
  });

const ends = z
  .array(z.enum(FOLLOWED_ENDS))
  .min(1)
  .refine((value) => new Set(value).size === value.length, { error: 'must not name a status twice' })
  .meta({
    uniqueItems: true,
    description: 'How such a run must have ended; `late`: one run when the schedule becomes late.',
    example: ['failed', 'unknown'],
  });

const DEFAULT_ENDS: FollowedEnd[] = ['succeeded'];
const AFTER = 'One run for each run of another schedule that ends so; `scheduledFor` is the moment it ended.';

const fields = {
  at: instant.describe(
    'One fire at this instant, late if need be (unless `catchUp` says otherwise); then it is `ended`.',
  ),
  startAt: instant.describe('Inclusive: fires from here on only. An interval is anchored here.'),
  endAt: instant.describe('Exclusive: fires before this only.'),
  catchUp: z.enum(CATCH_UPS).meta({
    description:
      'What becomes of fires *missed*, that is more than `graceSeconds` late when planned: none of them fires · the newest ' +
      'does, and stands for the others · each does, oldest first.',
  }),
  catchUpLimit: whole(0, 10_000).describe('`all` fires at most that many per outage, the newest.'),
  graceSeconds: whole(0, 31 * DAY).describe(
    'A fire at most that late is on time, and fires whatever `catchUp` says; so is one at most a second late.',
  ),
  overlap: z.enum(OVERLAPS).meta({
    description:
      'While an earlier run is active (pending or running): start another · record this one as `skipped` · let it wait, and ' +
      'a newer one take its place · cancel the active one and start.',
  }),
  jitterSeconds: whole(0, DAY).describe(
    'Each fire is due at `scheduledFor` + a delay of at most that, fixed per schedule and fire, and never past the next fire.',
  ),
};

const { at, startAt, endAt, ...rules } = fields;

/** With defaults; to be used with `refuseDayRules`. */
export const dayRulesInput = {
  onExcluded: onExcluded.default('skip'),
  ...orNull({ every, pick }),
};

/** With defaults; to be used with `exactlyOneKind`. */
export const timingInput = {
  cron: cronInput.default(null),
  ...orNull({ everySeconds, at }),
  after: z
    .strictObject({ scheduleId: parent, on: ends.default(DEFAULT_ENDS) })
    .meta({
      id: 'After',
      description: AFTER,
      example: { scheduleId: '*', on: ['failed', 'unknown', 'abandoned'] },
    })
    .nullable()
    .default(null),
  timezone: zoneText.nullable().default(null),
  exclude: excludeInput.nullable().default(null),
  ...dayRulesInput,
  ...orNull({ startAt, endAt }),
  ...withDefaults(rules, { ...DEFAULT_TIMING, overlap: 'allow' }),
};

/** To be used with `atMostOneKind`. */
export const timingPatch = {
  cron: cronInput.optional(),
  ...nullish({ everySeconds, at }),
  after: z.strictObject({ scheduleId: parent.optional(), on: ends.nullish() }).nullish(),
  timezone: zoneText.nullish(),
  exclude: excludePatch.nullish(),
  ...nullish({ onExcluded, every: everyPatch, pick: pickPatch }),
  ...nullish({ startAt, endAt, ...rules }),
};

const ONE_OF_FOUR =
  'One of `cron`, `everySeconds`, `at` and `after` is not null, but of a heartbeat (`observe`): it says when the schedule fires.';

export const timingAnswer = {
  cron: answeredCron.meta({ description: ONE_OF_FOUR, example: '0 2 * * *' }),
  everySeconds: z.int().nullable().meta({ description: 'The interval in seconds.', example: null }),
  at: answeredInstant.nullable().meta({ description: 'The one fire.', example: null }),
  after: z.object({ scheduleId: parent, on: ends }).meta({ id: 'AnsweredAfter', description: AFTER }).nullable(),
  timezone: z
    .string()
    .nullable()
    .meta({ description: 'Of `cron` and `exclude`; null = UTC.', example: 'Europe/Berlin' }),
  exclude: answeredExclude.nullable(),
  onExcluded,
  every: every.nullable(),
  pick: pick.nullable(),
  startAt: answeredInstant.nullable().meta({ description: 'Inclusive.', example: null }),
  endAt: answeredInstant.nullable().meta({ description: 'Exclusive.', example: null }),
  ...rules,
};

type Refine = (value: unknown, context: z.core.$RefinementCtx) => void;

export const exactlyOneKind: Refine = (value, context) => {
  if (kindsOf(value).length === 0) {
    const message = 'is required, or one of everySeconds, at and after instead';
    context.addIssue({ code: 'custom', path: ['cron'], message });
  }
  refuseTogether(value, context);
};

/** What cannot go together, whichever kind there is. */
export const refuseTogether: Refine = (value, context) => {
  refuseSeveral(kindsOf(value), context);
  refuseExcludeBesideAfter(value, context);
  refuseDayRules(value, context);
};

export const atMostOneKind: Refine = (value, context) => {
  refuseSeveral(kindsOf(value), context);
  refuseExcludeBesideAfter(value, context);
};

const MAX_DURATION_LENGTH = 64;

function secondsInstead(text: string): string | undefined {
  const seconds = text.length > MAX_DURATION_LENGTH ? null : secondsOf(text);
  return seconds === null ? undefined : `must be a number of seconds: write ${seconds}`;
}

function zoneFault(value: string): string | null {
  if (isKnownZone(value)) return null;
  const hint = zoneHint(value);
  return `is not the IANA name of a time zone${hint === null ? '' : `; ${hint}`}`;
}

function refuseSeveral(given: readonly string[], context: z.core.$RefinementCtx): void {
  if (given.length < 2) return;
  const message = `cannot be combined: only one of ${given.join(', ')} can be given`;
  for (const kind of given) context.addIssue({ code: 'custom', path: [kind], message });
}

/** Which kinds are given, right or wrong. */
export function kindsOf(value: unknown): (typeof TIMING_KINDS)[number][] {
  if (!isObject(value)) return [];
  return TIMING_KINDS.filter((kind) => value[kind] !== null && value[kind] !== undefined);
}
