import { z } from 'zod';
import { MAX_EXPECT_SECONDS, MAX_RESULT_BOUNDS } from '../../core/schedules/expect.ts';
import { ALWAYS, nullable, nullish, orNull, whole } from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import { jsonPointer } from '../targets/body-and-outcome.ts';

const seconds = {
  startWithinSeconds: whole(1, MAX_EXPECT_SECONDS).meta({
    description: 'From `scheduledFor` + jitter until its first attempt begins. A backfilled run has no such bound.',
    example: 60,
  }),
  finishWithinSeconds: whole(1, MAX_EXPECT_SECONDS).meta({
    description: 'From the beginning of its first attempt until its end, through all attempts.',
    example: 900,
  }),
  atLeastSeconds: whole(1, MAX_EXPECT_SECONDS).meta({
    description: 'A success does not come sooner after the beginning of its first attempt.',
    example: 5,
  }),
};

const places = {
  pointer: jsonPointer,
  min: z.number().optional(),
  max: z.number().optional(),
  equals: z.unknown().optional(),
};

const RESULT =
  'What holds of the result of a success, as its target answered or its worker reported it: JSON of at most 64 KiB, in which the value ' +
  'at each `pointer` is at least `min` and at most `max` (a number, by its decimal value) and is what `equals` says.';
const EXAMPLE = [{ pointer: '/rows', min: 1 }];

const result = z
  .array(
    z.strictObject(places).superRefine((bound, context) => {
      const { min, max } = bound;
      if (min === undefined && max === undefined && !('equals' in bound))
        context.addIssue({ code: 'custom', message: 'must have min, max or equals' });
      if (min !== undefined && max !== undefined && min > max)
        context.addIssue({ code: 'custom', path: ['min'], message: 'must not be above max' });
    }, ALWAYS),
  )
  .min(1)
  .max(MAX_RESULT_BOUNDS)
  .meta({ description: RESULT, example: EXAMPLE });

const bounds = { ...seconds, result };

const EXPECT =
  'Bounds that each run is judged by, once, when the bound passes (noticed within 10 s), whatever it does then. What did not hold stands ' +
  'in its `unmet`. Null: none.';

export const expectInput = z
  .strictObject(orNull(bounds))
  .superRefine((value, context) => {
    if (!isObject(value) || Object.values(value).some((bound) => (bound ?? null) !== null)) return;
    context.addIssue({
      code: 'custom',
      message: `must have one of ${Object.keys(bounds).join(', ')}`,
    });
  }, ALWAYS)
  .meta({ id: 'Expect', description: EXPECT });

/** What is left of it after the merge is checked then. */
export const expectPatch = z.strictObject(nullish(bounds));

export const answeredExpect = z
  .object({
    ...nullable(seconds),
    result: z.array(z.object(places)).nullable().meta({ description: RESULT, example: EXAMPLE }),
  })
  .nullable()
  .describe(EXPECT);
