import { z } from 'zod';
import { OCCURRENCE_STATES } from '../../core/time/occurrences.ts';
import { BACKFILL_AS } from '../../operations/runs/backfill.ts';
import { pageSchema } from '../http/pages.ts';
import { answeredInstant, instant, whole } from '../http/common-schemas.ts';

export const occurrence = z
  .object({
    fireAt: answeredInstant,
    state: z.enum(OCCURRENCE_STATES).meta({
      description:
        '`fired`: it has a run of its own, whatever became of that · `missed`: it was too late when it was planned · ' +
        '`skipped`: an earlier run was active, or a caller asked for it · `paused` · `excluded`: its day is excluded · `upcoming`: not planned yet.',
    }),
    reason: z
      .string()
      .optional()
      .meta({
        description:
          'Of `missed`: the value of `catchUp` that decided (`latest`, `skip`, or `limit`: more than `catchUpLimit`), ' +
          'or `retention`: older than records are kept: it was not planned, or its run, which may have fired, was dropped since. `unknown`: no record explains it; ' +
          'that happens where records were removed, the retention was shorter for a while, or the rules of the zone were others then. ' +
          '`clock`: it is still to come, and counts as planned, since the clock of the database was ahead. ' +
          'Of `skipped`: `overlap`, or `request`: it was asked for, by `/skip`; before its moment it has no `runId` yet. ' +
          'Of `excluded`: the date or range, as the schedule has it, the id of the calendar, or the weekday. Of `upcoming`: `error`, the schedule cannot be planned at present.',
      }),
    runId: z
      .string()
      .optional()
      .meta({ format: 'uuid', description: 'Its own run, or the record that stands for it.' }),
    movedFrom: z.string().optional().meta({
      format: 'date',
      description: 'The excluded day whose fire it is, by `onExcluded`.',
      example: '2026-12-25',
    }),
    movedTo: z.string().optional().meta({
      format: 'date',
      description: 'Of `excluded`: the day on which its fires are made, by `onExcluded`.',
    }),
    version: z.int().meta({ description: 'Of the schedule, under which it was due.' }),
  })
  .meta({ id: 'Occurrence' });

export const occurrencePage = pageSchema(occurrence)
  .extend({
    plannedThrough: answeredInstant.optional().meta({
      description:
        'Up to when no fire is planned any more; there only where that is still to come, since the clock of the database was ahead: `firelock resume --from-now` sets it back.',
    }),
    unplannable: z
      .array(
        z.object({
          version: z.int(),
          from: answeredInstant,
          to: answeredInstant.nullable(),
          error: z.string(),
        }),
      )
      .optional()
      .meta({
        description:
          'Versions of the period whose fire times cannot be told, and while they were in force; there only where there are some.',
      }),
  })
  .meta({ description: 'A page can hold fewer than `limit`, even none, and have a `nextCursor`.' });

export const backfillInput = z.strictObject({
  from: instant.meta({ description: 'Inclusive; however long ago, from 2000 on.' }),
  to: instant.meta({ description: 'Exclusive; not later than now.' }),
  limit: whole(1, 10_000).default(1000),
  as: z
    .enum(BACKFILL_AS)
    .default('now')
    .meta({
      description:
        '`now`: by the definition as it is now. `then`: each moment by the version that was in force, which its run is of; what lies before ' +
        'its creation is not made, what was paused then is. 422 unless all versions since the one in force at `from` are stored.',
    }),
});

export const backfilled = z.object({
  created: z.int().meta({ description: 'Runs that are to be handed off now: new ones, and re-opened ones.' }),
  existing: z.int().meta({ description: 'Occurrences that have a run already, which is left as it is.' }),
  remainingFrom: answeredInstant
    .nullable()
    .meta({ description: 'The first occurrence beyond `limit`, to go on from; null: there is none.' }),
});

export const load = z
  .object({
    items: z
      .array(z.object({ at: answeredInstant, fires: z.int() }))
      .meta({ description: 'Buckets with fires, by the moment they begin; jitter included.' }),
    busiest: z.object({ at: answeredInstant, fires: z.int() }).nullable(),
    schedules: z.int().meta({ description: 'How many enabled schedules with fire times were counted.' }),
    firing: z
      .array(z.object({ id: z.string(), fires: z.int() }))
      .optional()
      .meta({
        description: 'With `top`: schedules that fire in the period, those with the most fires first.',
      }),
    nextCursor: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'With `maxSchedules`: where to go on; null: all schedules were counted.' }),
  })
  .meta({
    description:
      'What lies before now is counted as if the schedules had always been as they are: not what fired, which `/stats` and ' +
      '`/schedules/{id}/occurrences` tell.',
  });
