import { z } from 'zod';
import { withoutFault } from '../http/common-schemas.ts';
import { MAX_EXPRESSION_LENGTH, CronError } from '../../core/cron/cron.ts';
import { MAX_EXPRESSIONS, MIN_EXPRESSIONS } from '../../core/cron/cron-fields.ts';
import { normalSpelling, parseCron } from '../../core/cron/cron-parse.ts';
import { LRUCache } from 'lru-cache';
import { isZone } from '../../core/zones/zone.ts';

const SYNTAX =
  '5 fields, or 6 with seconds first, or a nickname such as `@daily`. `H` and `?` are picked by ' +
  'firelock, always the same for one schedule id; `+` before the day of the week means that both day fields must match.';

const expression = z
  .string()
  .superRefine(withoutFault(cronFault))
  .meta({
    format: 'cron',
    maxLength: MAX_EXPRESSION_LENGTH,
    description: `A cron expression: ${SYNTAX}`,
    example: '0 2 * * *',
  });

/** The number of expressions is checked before their content, since thousands of them would take long to read. */
const expressions = z
  .array(z.string().meta({ format: 'cron', maxLength: MAX_EXPRESSION_LENGTH }))
  .superRefine(checkList, { when: ({ value }) => Array.isArray(value) })
  .meta({
    minItems: MIN_EXPRESSIONS,
    maxItems: MAX_EXPRESSIONS,
    uniqueItems: true,
    description: 'Several expressions: it fires when any of them does. Moments that coincide fire once.',
    example: ['0 9 * * MON-FRI', '0 11 * * SAT'],
  });

export const cronInput = z
  .union([expression, expressions, z.null()], { error: 'must be a string, or a list of strings' })
  .describe(`A cron expression, or a list of ${MIN_EXPRESSIONS} to ${MAX_EXPRESSIONS} of them.`);

/** As it was sent: a string, or a list in its order. */
export const answeredCron = z.union([z.string(), z.array(z.string()), z.null()]);

function checkList(list: readonly unknown[], context: z.core.$RefinementCtx): void {
  const refuse = (path: number[], message: string) => context.addIssue({ code: 'custom', path, message, input: list });
  if (list.length < MIN_EXPRESSIONS || list.length > MAX_EXPRESSIONS) {
    refuse([], `must be a list of ${MIN_EXPRESSIONS} to ${MAX_EXPRESSIONS} expressions, or one as a string`);
    return;
  }
  const first = new Map<string, number>();
  for (const [index, text] of list.entries()) {
    if (typeof text !== 'string') continue;
    const fault = cronFault(text);
    if (fault !== null) {
      refuse([index], fault);
      continue;
    }
    const spelled = normalSpelling(text);
    const earlier = first.get(spelled);
    if (earlier === undefined) first.set(spelled, index);
    else refuse([index], `is the same expression as that at index ${earlier}`);
  }
}

/** Twice the most of each that one batch can contain. */
const REMEMBERED = 2000;
const MAX_ZONE_LENGTH = 256;

const cronFaults = new LRUCache<string, { fault: string | null }>({ max: REMEMBERED });
const zones = new LRUCache<string, boolean>({ max: REMEMBERED });

/** The fault of an expression; it does not depend on the schedule. */
function cronFault(expression: string): string | null {
  if (expression.length > MAX_EXPRESSION_LENGTH) return findCronFault(expression);
  const known = cronFaults.get(expression) ?? { fault: findCronFault(expression) };
  cronFaults.set(expression, known);
  return known.fault;
}

export function isKnownZone(name: string): boolean {
  if (name.length > MAX_ZONE_LENGTH) return false;
  const known = zones.get(name) ?? isZone(name);
  zones.set(name, known);
  return known;
}

function findCronFault(expression: string): string | null {
  try {
    parseCron(expression, '');
    return null;
  } catch (error) {
    if (error instanceof CronError) return error.message;
    throw error;
  }
}
