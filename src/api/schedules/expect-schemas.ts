import { z } from 'zod';
import { MAX_EXPECT_SECONDS } from '../../core/schedules/expect.ts';
import { ALWAYS, nullish, orNull, whole } from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';

const bounds = {
  startWithinSeconds: whole(1, MAX_EXPECT_SECONDS).meta({
    description:
      'From `scheduledFor` + jitter until its first attempt begins. A backfilled run has no such bound.',
    example: 60,
  }),
  finishWithinSeconds: whole(1, MAX_EXPECT_SECONDS).meta({
    description: 'From the beginning of its first attempt until its end, through all attempts.',
    example: 900,
  }),
};

const EXPECT =
  'Bounds that each run is judged by, once, when the bound passes (noticed within 10 s), whatever it does then. What did not hold stands ' +
  'in its `unmet`. Null: none.';

export const expectInput = z
  .strictObject(orNull(bounds))
  .superRefine((value, context) => {
    if (!isObject(value) || Object.values(value).some((bound) => (bound ?? null) !== null)) return;
    context.addIssue({
      code: 'custom',
      message: 'must have startWithinSeconds, finishWithinSeconds or both',
    });
  }, ALWAYS)
  .meta({ id: 'Expect', description: EXPECT });

/** What is left of it after the merge is checked then. */
export const expectPatch = z.strictObject(nullish(bounds));

export const answeredExpect = z
  .object({
    startWithinSeconds: bounds.startWithinSeconds.nullable(),
    finishWithinSeconds: bounds.finishWithinSeconds.nullable(),
  })
  .nullable()
  .meta({ description: EXPECT });
