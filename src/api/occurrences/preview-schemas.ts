import { z } from 'zod';
import { answeredInstant, instant, scheduleIdText, whole, queryInstant } from '../http/common-schemas.ts';
import { queryInteger } from '../http/filter-schemas.ts';
import { exactlyOneOf } from '../document/kinds.ts';
import { cronInput } from '../schedules/cron-schemas.ts';
import { excludeInput, refuseDayRules } from '../schedules/day-schemas.ts';
import { dayRulesInput, everySeconds, zoneText } from '../schedules/timing-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import { DAY_VERDICTS } from '../../core/time/explained-days.ts';

const MOST = 1000;
export const MAX_FIRES_OF_DAY = 8;

export const upcomingQuery = z.strictObject({
  count: queryInteger(1, MOST, 10),
  from: queryInstant.optional(),
});

export const previewInput = z
  .strictObject({
    cron: cronInput.default(null),
    everySeconds: everySeconds.nullable().default(null),
    timezone: zoneText.nullable().default(null),
    exclude: excludeInput.nullable().default(null),
    ...dayRulesInput,
    from: instant
      .nullish()
      .describe('Fires strictly after it; an interval is anchored here. Now where it is not given.'),
    count: whole(1, MOST).default(10),
    id: scheduleIdText.nullish().meta({
      description:
        'The schedule that it is meant for: `H` and `?` are picked by its id. Without it, `assumes` says so in the answer.',
    }),
  })
  .superRefine(oneOfTwo, { when: ({ value }) => isObject(value) })
  .meta({
    description: 'Exactly one of `cron` and `everySeconds`.',
    ...exactlyOneOf(['cron', 'everySeconds']),
  });

const fireTime = z.object({
  fireAt: answeredInstant,
  local: z
    .string()
    .meta({ format: 'date-time', description: 'In its zone.', example: '2026-11-20T10:00:00.000+01:00' }),
  note: z.string().optional().meta({
    description:
      'What a change of the clocks did to it: `moved by DST` or `repeated hour`; or from which day it was moved, and why.',
    example: 'moved from 2026-12-25 (calendar us-holidays)',
  }),
});

const localDate = z.string().meta({ format: 'date' });

const explainedDay = z
  .object({
    date: localDate.describe('In the zone of the schedule.'),
    verdict: z.enum(DAY_VERDICTS).meta({
      description:
        '`fires`: at least once · `notSelected`: by no expression · `notItsTurn`: by `every` · `excluded` · `moved`: excluded, and its fires ' +
        'are made on `movedTo` · `notPicked`: by `pick` · `outside`: before `startAt`, or not before `endAt` · `clocks`: clocks were set ' +
        'forward over its fires, which the next day makes · `noSuchDate`: its zone left it out.',
    }),
    fires: z.array(fireTime).describe(`The first ${MAX_FIRES_OF_DAY}, also those before \`from\`.`),
    more: z.literal(true).optional().describe('There only where it has more fires than these.'),
    reason: z.string().optional().meta({ description: 'What excludes it.', example: 'calendar us-holidays' }),
    movedTo: localDate.optional().describe('Where its own fires are made, by `onExcluded`.'),
    movedFrom: z.array(localDate).optional().describe('Excluded days whose fires are made on it, by `onExcluded`.'),
  })
  .meta({ id: 'ExplainedDay' });

const days = z.array(explainedDay).optional();

const MONTH =
  'Each day of the local month of `from`, and why it fires or not; there only where `exclude`, `every` or `pick` decide about days';

export const upcomingTimes = z.object({
  items: z.array(
    fireTime.extend({
      dueAt: answeredInstant.optional().describe('`fireAt` and its jitter, where the schedule has one.'),
      skipped: z.literal(true).optional().describe('It is not made: `/skip` was called for it.'),
      skipReason: z.string().optional().describe('Why, in the words of that call.'),
    }),
  ),
  days: days.describe(`${MONTH}. Fires that \`/skip\` leaves out are among them.`),
  warnings: z
    .array(z.object({ kind: z.literal('calendar'), calendar: z.string(), validUntil: localDate }))
    .describe('Calendars that it excludes, and that end within 90 days or have ended.'),
});

/** The note of a preview of `H` and `?` without an id. */
export const ASSUMED_ID =
  'an id like no other, since none was given: `H` and `?` are picked by the id, and a schedule fires at times of its own';

export const previewedTimes = z.object({
  description: z.string().meta({ description: 'In plain English.', example: 'At 02:30' }),
  items: z.array(fireTime),
  days: days.describe(`${MONTH}, and \`cron\` is given.`),
  assumes: z.string().optional().meta({
    description: 'There only where the times hang on what was not given: `cron` has `H` or `?`, and there is no `id`.',
    example: ASSUMED_ID,
  }),
});

/** Also if one of them is wrong: every fault is named at once. */
function oneOfTwo(value: unknown, context: z.core.$RefinementCtx): void {
  refuseDayRules(value, context);
  const given = isObject(value) ? KINDS.filter((kind) => (value[kind] ?? null) !== null) : [];
  if (given.length === 0) {
    const message = 'is required, or everySeconds instead';
    context.addIssue({ code: 'custom', path: ['cron'], message });
  }
  if (given.length < 2) return;
  const message = 'cannot be combined: only one of cron, everySeconds can be given';
  for (const kind of given) context.addIssue({ code: 'custom', path: [kind], message });
}

const KINDS = ['cron', 'everySeconds'] as const;
