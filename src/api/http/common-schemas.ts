import { z } from 'zod';
import { type Instant, EARLIEST, isoInstant, LATEST } from '../../core/instant.ts';
import { isObject } from './json/json-body.ts';
import { RUN_STATUSES, RUN_TRIGGERS } from '../../core/runs/run.ts';
import { BOUNDS } from '../../core/schedules/expect.ts';
import { SCHEDULE_STATUSES } from '../../core/schedules/schedule.ts';

export const NO_SCHEDULE_ID =
  'must be 1 to 128 letters (A-Z, a-z), digits, dots, dashes or underscores, and begin with a letter or digit';

export const scheduleIdText = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, { error: NO_SCHEDULE_ID })
  .meta({ description: 'Chosen by the client.', example: 'nightly-report' });

export const limitIdText = scheduleIdText.meta({
  description: 'The limit that its runs count against: of them, no more than its `maxRunning` are under way at once.',
  example: 'warehouse',
});

export const connectionIdText = scheduleIdText.meta({ example: 'github' });

export const notifierIdText = scheduleIdText.meta({ example: 'on-call' });

export const calendarIdText = scheduleIdText.meta({ example: 'holidays' });

export const scheduleIdParams = z.strictObject({ id: scheduleIdText });

export const RUN_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

export const runIdText = z
  .string()
  .regex(RUN_ID, { error: 'must be a UUID' })
  .toLowerCase()
  .meta({ format: 'uuid', description: 'A UUID in version-7 layout whose time bits are `scheduledFor`.' });

export const runIdParams = z.strictObject({ id: runIdText });

export const workerIdText = z
  .string()
  // oxlint-disable-next-line no-control-regex -- these are what it refuses; not by \\P{Cc}, which few tools read
  .regex(/^[^\x00-\x1f\x7f-\x9f]{1,255}$/u, { error: 'must be 1 to 255 printable characters' })
  .meta({
    description: 'Any name that no other worker has, the same in each of its calls.',
    example: 'reports-7',
  });

/** Accepted and ignored, so that a caller can edit the answer of GET and send it back. */
export const ignored = z.unknown().optional().meta({ readOnly: true });

type Shape = Record<string, z.ZodType>;

/** Fields that only firelock sets: as `ignored`. */
export function allIgnored<Fields extends Shape>(fields: Fields) {
  return mapped(fields, () => ignored) as { [Name in keyof Fields]: typeof ignored };
}

/** The fields of a patch. */
export function nullish<Fields extends Shape>(fields: Fields) {
  return mapped(fields, (field) => field.nullish()) as {
    [Name in keyof Fields]: z.ZodOptional<z.ZodNullable<Fields[Name]>>;
  };
}

/** Null where they are not given. */
export function orNull<Fields extends Shape>(fields: Fields) {
  return mapped(fields, (field) => field.nullable().default(null)) as {
    [Name in keyof Fields]: z.ZodDefault<z.ZodNullable<Fields[Name]>>;
  };
}

/** As answers have them. */
export function nullable<Fields extends Shape>(fields: Fields) {
  return mapped(fields, (field) => field.nullable()) as {
    [Name in keyof Fields]: z.ZodNullable<Fields[Name]>;
  };
}

/** Those of the defaults, where they are not given. */
export function withDefaults<Fields extends Shape>(
  fields: Fields,
  defaults: { readonly [Name in keyof Fields]: z.output<Fields[Name]> | Readonly<z.output<Fields[Name]>> },
) {
  return mapped(fields, (field, name) => field.default(defaults[name])) as {
    [Name in keyof Fields]: z.ZodDefault<Fields[Name]>;
  };
}

function mapped(fields: Shape, change: (field: z.ZodType, name: string) => z.ZodType): Shape {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, change(field, name)]));
}

/** For `superRefine`: also if single fields are wrong, so that one answer names every fault. */
export const ALWAYS = { when: ({ value }: { value: unknown }) => isObject(value) };

/**
 * A whole number; -0 is 0, so that what comes back from the database equals what was sent. `instead` says what a text stands for.
 */
export function whole(min: number, max: number, instead?: (text: string) => string | undefined) {
  return z
    .int({
      // Zod's own message names the largest number that is safe as an integer.
      error: ({ code, input }) =>
        code === 'too_big'
          ? `must be at most ${max}`
          : code === 'too_small'
            ? `must be at least ${min}`
            : typeof input === 'string'
              ? instead?.(input)
              : undefined,
    })
    .min(min)
    .max(max)
    .overwrite((value) => value + 0);
}

/** At most that many characters (code points, as JSON Schema counts them). */
export function text(max: number): z.ZodString {
  return z
    .string()
    .refine((value) => value.length <= max || (value.length <= 2 * max && Array.from(value).length <= max), {
      error: `must be at most ${max} characters`,
    })
    .meta({ maxLength: max });
}

/** What a transformation answers for a value that has a fault. */
export function refused(context: z.core.$RefinementCtx, message: string): never {
  context.issues.push({ code: 'custom', input: context.value, message });
  return z.NEVER;
}

/** For `superRefine`: `faultOf` says what is wrong with a value; null: nothing. */
export function withoutFault<T = string>(faultOf: (value: T) => string | null) {
  return (value: T, context: z.core.$RefinementCtx<T>): void => {
    const message = faultOf(value);
    if (message !== null) context.addIssue({ code: 'custom', message });
  };
}

/** Any text, for the compiler: `isMoment` only tells it which fields of answers are moments. */
export type AnsweredMoment = string & { readonly isMoment?: never };

/** An instant of an answer. */
export const answeredInstant: z.ZodType<AnsweredMoment> = z
  .string()
  .meta({ format: 'date-time', example: '2026-11-20T09:00:00.000Z' });

const INSTANT_META = {
  format: 'date-time',
  description: 'ISO 8601 with an offset, between 2000 and 2100.',
  example: '2026-11-20T10:00:00+01:00',
};

/** An instant of a body. */
export const instant = z
  .string()
  .transform(toInstant)
  .meta({ type: 'string', ...INSTANT_META });

/** An instant of a query, where a `+` that was not encoded has become a space. */
export const queryInstant = z
  .string()
  .transform((value, context) => toInstant(value.replace(/ (?=\d\d(:?\d\d)?$)/, '+'), context))
  .meta({ type: 'string', ...INSTANT_META });

/** Milliseconds, or what is wrong. Finer fractions are cut. */
function parseInstant(value: string): Instant | string {
  const parts = INSTANT.exec(value);
  if (!parts) return 'must be an ISO 8601 instant with an offset, such as 2026-11-20T09:00:00Z';
  const [, date = '', hour = '', minute = '', second = '00', fraction = '', offset = ''] = parts;
  // Date.parse takes 30 February for 2 March.
  const midnight = Date.parse(`${date}T00:00Z`);
  if (Number.isNaN(midnight) || !isoInstant(midnight).startsWith(date))
    return `names a day that does not exist: ${date}`;
  const zone = /z/i.test(offset) ? 'Z' : `${offset.slice(0, 3)}:${offset.slice(3).replace(':', '') || '00'}`;
  const at = Date.parse(`${date}T${hour}:${minute}:${second}.${fraction.slice(0, 3).padEnd(3, '0')}${zone}`);
  return at >= EARLIEST && at <= LATEST ? at : 'must lie between 2000 and 2100';
}

const INSTANT =
  /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)$/i;

function toInstant(value: string, context: z.core.$RefinementCtx<string>): Instant {
  const read = parseInstant(value);
  return typeof read === 'number' ? read : refused(context, read);
}

// Words that several answers and filters share: by their names, they are one type in a client.
export const runStatus = z.enum(RUN_STATUSES).meta({ id: 'RunStatus' });
export const runTrigger = z.enum(RUN_TRIGGERS).meta({ id: 'RunTrigger' });
export const scheduleStatus = z.enum(SCHEDULE_STATUSES).meta({ id: 'ScheduleStatus' });
export const expectBound = z.enum(BOUNDS).meta({ id: 'Bound' });

export const storedLabelName = z.string().min(1).max(63);
/** A filter, `key:value`, ends the key at its first colon. */
export const labelName = storedLabelName.regex(/^[^:]*$/, { error: 'must not have a colon' });
export const MAX_LABELS = 32;

export function labelsNamed(name: z.ZodString) {
  return z
    .record(name, text(255))
    .refine((value) => Object.keys(value).length <= MAX_LABELS, {
      error: `must be at most ${MAX_LABELS} labels`,
    })
    .meta({ maxProperties: MAX_LABELS, example: { team: 'billing' } })
    .default({});
}

interface Issue {
  code?: string;
  input?: unknown;
}

/** Of a strict object: `what` has no such field. */
export function notAFieldOf(what: string) {
  return {
    error: ({ code }: Issue) => (code === 'unrecognized_keys' ? `is not a field of ${what}` : undefined),
  };
}

/** The `error` of a union of objects that `type` tells apart. */
export function typeFaultOf(types: readonly string[]) {
  const known = types.map((type) => `"${type}"`).join(' or ');
  return ({ code, input }: Issue): string | undefined => {
    if (code !== 'invalid_union') return undefined;
    const isThere = typeof input === 'object' && input !== null && 'type' in input;
    return isThere ? `must be ${known}` : `is required: ${known}`;
  };
}
