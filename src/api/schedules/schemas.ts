import { z } from 'zod';
import {
  allIgnored,
  ALWAYS,
  answeredInstant,
  instant,
  labelName,
  labelsNamed,
  nullish,
  orNull,
  scheduleIdText,
  scheduleStatus,
  storedLabelName,
  text,
  whole,
} from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import {
  atMostOneKind,
  exactlyOneKind,
  kindsOf,
  refuseTogether,
  timingAnswer,
  timingInput,
  timingPatch,
} from './timing-schemas.ts';
import { MAX_INTERVAL_SECONDS } from '../../core/instant.ts';
import { atMostOneOf, exactlyOneOrHeartbeat } from '../document/kinds.ts';
import { MAX_ITEMS } from '../http/json/json-parts.ts';
import { answeredTarget, targetInput, targetPatch } from '../targets/schemas.ts';
import { handoffAnswer, handoffInput, handoffPatch, turnInput } from '../targets/handoff-schemas.ts';
import { answeredExpect, expectInput, expectPatch } from './expect-schemas.ts';

const OBSERVE =
  'Another scheduler runs the job: occurrences before `until` (null: all) are recorded as runs, `observed: true`, and nothing is sent; ' +
  'the job reports with the `pingKey`. From `until` on they are sent. With `until: null`, `target` may be null, and there may be no ' +
  'trigger at all: a heartbeat, which needs `successWithinSeconds`. Null: it observes nothing.';
const until = instant.meta({ description: 'Exclusive; null: for ever.', example: null });

const observeInput = z
  .strictObject({ until: until.nullable().default(null) })
  .meta({ id: 'Observe', description: OBSERVE });

const observePatch = z.strictObject({ until: until.nullish() });

const answeredObserve = z.object({ until: answeredInstant.nullable() }).nullable().describe(OBSERVE);

type Refine = (value: unknown, context: z.core.$RefinementCtx) => void;

/** What a schedule needs: a trigger and a target, unless it observes for ever; a heartbeat says how often its job must succeed. */
const completeSchedule: Refine = (value, context) => {
  const refuse = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
  const sent = isObject(value) ? value : {};
  const observesForEver = isObject(sent['observe']) && (sent['observe']['until'] ?? null) === null;
  if ((sent['target'] ?? null) === null && !observesForEver)
    refuse('target', 'is required: "http" or "pull"; it may be null only where observe has no until');
  if (kindsOf(value).length > 0 || !observesForEver) exactlyOneKind(value, context);
  else {
    refuseTogether(value, context);
    if ((sent['successWithinSeconds'] ?? null) === null)
      refuse('successWithinSeconds', 'is required of a schedule without cron, everySeconds, at and after');
  }
};

/** Those that were stored before they were refused can be taken away. */
function keysWithoutColon(given: Record<string, string | null>, context: z.core.$RefinementCtx): void {
  for (const [key, value] of Object.entries(given))
    if (value !== null && key.includes(':'))
      context.addIssue({ code: 'custom', path: [key], message: 'must not have a colon in its name' });
}

const description = text(1000);
const enabled = z.boolean().describe('false = paused.');

const pauseFields = {
  pauseReason: text(1000).describe(
    'Why it is paused: set by hand, or by the daemon where the target answered 410 Gone or too many runs failed. Null whenever `enabled` is true.',
  ),
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

/** What firelock alone sets. A caller may send it back. */
export const stateAnswer = {
  status: scheduleStatus.describe(
    '`ended`: nothing is left to fire; `error`: it cannot be planned, and `error` says why.',
  ),
  late: z.boolean().describe('No run has succeeded within `successWithinSeconds`; never of a paused or ended one.'),
  error: z.string().nullable().describe('Why it cannot be planned.'),
  nextFireAt: answeredInstant
    .nullable()
    .describe('With its jitter; null unless active. Fires that are to be skipped are passed over.'),
  lastFireAt: answeredInstant.nullable(),
  pingKey: z.string().nullable().meta({
    description:
      'By which the job of an observed schedule reports, at `/ping/KEY`. For operators and admins who may change it; else null.',
  }),
  lockedBy: z.string().nullable(),
  lockedAt: answeredInstant.nullable(),
  version: z.int(),
  createdAt: answeredInstant,
  updatedAt: answeredInstant,
};
const readOnlyFields = allIgnored(stateAnswer);

const definitionInput = {
  description: description.nullable().default(null),
  ...timingInput,
  enabled: enabled.default(true),
  ...orNull(pauseFields),
  expect: expectInput.nullable().default(null),
  observe: observeInput.nullable().default(null),
  ...handoffInput,
  target: targetInput.nullable().default(null),
  ...turnInput,
  labels: labelsNamed(labelName),
  ...readOnlyFields,
};

const ONE_OF_FOUR =
  'Exactly one of `cron`, `everySeconds`, `at` and `after` says when it fires; none of a heartbeat (`observe`).';

export const scheduleInput = z
  .strictObject({ id: scheduleIdText.optional(), ...definitionInput })
  .superRefine(completeSchedule, ALWAYS)
  .meta({ id: 'ScheduleDefinition', description: ONE_OF_FOUR, ...exactlyOneOrHeartbeat() });
export type ScheduleInput = z.output<typeof scheduleInput>;

/** What a patch makes of a stored schedule, whose labels may be older than the rule for their keys. */
export const patchedInput = z
  .strictObject({ ...scheduleInput.shape, labels: labelsNamed(storedLabelName) })
  .superRefine(completeSchedule, ALWAYS);

/** Of a batch. */
export const itemInput = z
  .strictObject({ id: scheduleIdText, ...definitionInput })
  .superRefine(completeSchedule, ALWAYS)
  .meta({ id: 'ScheduleWithId', description: ONE_OF_FOUR, ...exactlyOneOrHeartbeat() });

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
    description: description.nullish(),
    ...timingPatch,
    enabled: enabled.nullish(),
    ...nullish(pauseFields),
    expect: expectPatch.nullish(),
    observe: observePatch.nullish(),
    ...handoffPatch,
    target: targetPatch.nullish(),
    labels: z.record(storedLabelName, text(255).nullable()).superRefine(keysWithoutColon).nullish(),
    ...readOnlyFields,
  })
  .superRefine(atMostOneKind, ALWAYS)
  .meta({
    id: 'SchedulePatch',
    description:
      'RFC 7396: null resets a field to its default. Naming another of `cron`, `everySeconds`, `at` and `after` takes the old one away.',
    ...atMostOneOf(),
  });

/** As a version says it. */
export const definitionAnswer = {
  description: description.nullable(),
  ...timingAnswer,
  enabled,
  pauseReason: pauseFields.pauseReason.nullable(),
  pauseUntil: answeredInstant.nullable().meta({ description: 'When its pause ends by itself.', example: null }),
  pauseAfterFailures: pauseFields.pauseAfterFailures.nullable(),
  successWithinSeconds: pauseFields.successWithinSeconds.nullable(),
  expect: answeredExpect,
  observe: answeredObserve,
  ...handoffAnswer,
  target: answeredTarget.nullable().describe('Null: nothing is sent, since it only observes.'),
  labels: z.record(z.string(), z.string()),
};

export const schedule = z.object({ id: scheduleIdText, ...definitionAnswer, ...stateAnswer }).meta({ id: 'Schedule' });
