import { z } from 'zod';
import { answeredInstant, instant } from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import { exactlyOneKind, kindsOf, refuseTogether } from './timing/timing-schemas.ts';

const OBSERVE =
  'Another scheduler runs the job: occurrences before `until` (null: all) are recorded as runs, `observed: true`, and nothing is sent; ' +
  'the job reports with the `pingKey`. From `until` on they are sent. With `until: null`, `target` may be null, and there may be no ' +
  'trigger at all: a heartbeat, which needs `successWithinSeconds`. Null: it observes nothing.';
const until = instant.meta({ description: 'Exclusive; null: for ever.', example: null });

export const observeInput = z
  .strictObject({ until: until.nullable().default(null) })
  .meta({ id: 'Observe', description: OBSERVE });

export const observePatch = z.strictObject({ until: until.nullish() });

export const answeredObserve = z
  .object({ until: answeredInstant.nullable() })
  .nullable()
  .meta({ description: OBSERVE });

type Refine = (value: unknown, context: z.core.$RefinementCtx) => void;

/** What a schedule needs: a trigger and a target, unless it observes for ever; a heartbeat says how often its job must succeed. */
export const completeSchedule: Refine = (value, context) => {
  const refuse = (name: string, message: string) =>
    context.addIssue({ code: 'custom', path: [name], message });
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
