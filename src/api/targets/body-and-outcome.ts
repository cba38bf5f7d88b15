import { z } from 'zod';
import { BODY_PLACEHOLDERS, compileBody, isTooLongWith, readContentType } from '../../core/http/body-template.ts';
import { pointerSteps } from '../../core/json-text.ts';
import { overlap, patternFault } from '../../core/runs/attempts/outcome-rules.ts';
import type { OutcomeRules, StatusPattern } from '../../core/schedules/schedule.ts';
import { withoutFault, nullish, withDefaults } from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import type { Fault } from '../http/problem.ts';
import { MASK, MAX_HEADER_VALUE_LENGTH } from './http-call-schemas.ts';
import { orFile, secretFile } from './secret-files.ts';

const MAX_TEMPLATE_BYTES = 64 * 1024;
const MAX_TEXT = 1024;

const templateText = z
  .string()
  .refine((value) => Buffer.byteLength(value) <= MAX_TEMPLATE_BYTES, { error: 'must be at most 64 KiB' })
  .meta({ format: 'body-template', maxLength: MAX_TEMPLATE_BYTES });

const contentType = z
  .string()
  .max(255)
  .superRefine(
    withoutFault((value) => {
      const read = readContentType(value);
      return 'fault' in read ? read.fault : null;
    }),
  )
  .meta({ format: 'media-type', maxLength: 255 });

const MAX_SECRETS = 16;
const secrets = z
  .record(
    z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, { error: 'must be named by 1 to 64 letters, digits, - and _' }),
    orFile(z.string().min(1).max(MAX_HEADER_VALUE_LENGTH), 'Write-only.'),
  )
  .refine((given) => Object.keys(given).length <= MAX_SECRETS, { error: `must be at most ${MAX_SECRETS}` })
  .meta({
    maxProperties: MAX_SECRETS,
    description: `What \`{{secret/NAME}}\` stands for, by name. Write-only values, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the URL's origin is unchanged. \`{"file": "NAME"}\`: the content of a file of \`FIRELOCK_SECRETS_DIR\`, as it is at each attempt.`,
    example: { key: '…' },
  });

const bodyTemplate = z
  .strictObject({
    template: templateText,
    contentType: contentType.default('application/json'),
    secrets: secrets.optional(),
  })
  .superRefine((body, context) => {
    const compiled = compileBody(body);
    if ('fault' in compiled && !('fault' in readContentType(body.contentType)))
      context.addIssue({ code: 'custom', path: ['template'], message: compiled.fault });
  })
  .meta({
    id: 'BodyTemplate',
    description:
      'A text of your own, up to 64 KiB, and 1 MiB once it is filled in. In JSON, a placeholder inside quotes becomes escaped text, and one outside of them a JSON ' +
      `value; in a form it is percent-encoded; elsewhere it is inserted as text. Placeholders: ${BODY_PLACEHOLDERS}. ` +
      '`payload/…` and `parent/…` go on with a JSON pointer (null where it leads to nothing).',
    example: { template: '{"text": "run {{runId}} of {{scheduleId}}: {{payload/title}}"}' },
  });

const KINDS = { error: 'must be "envelope", "payload" or an object with a template' };
export const body = z.union([z.enum(['envelope', 'payload']), bodyTemplate], KINDS).meta({
  description:
    "What is sent, except with GET and HEAD. envelope, the default: firelock's own JSON about the run. payload: the run's payload byte for byte.",
});
/** For a merge patch: the whole is checked once it is merged. */
export const patchedBody = z
  .union(
    [
      z.enum(['envelope', 'payload']),
      z.strictObject({
        template: z.string().optional(),
        contentType: z.string().nullish(),
        secrets: z.record(z.string(), z.union([z.string(), secretFile, z.null()])).nullish(),
      }),
      z.null(),
    ],
    KINDS,
  )
  .optional();
export const answeredBody = z.union([
  z.enum(['envelope', 'payload']),
  z
    .object({
      template: z.string(),
      contentType: z.string(),
      secrets: z.record(z.string(), z.union([z.string(), secretFile])).optional(),
    })
    .meta({
      id: 'AnsweredBodyTemplate',
      description: `A text with placeholders; each of its secret values is "${MASK}".`,
    }),
]);

const STATUS_PATTERN = String.raw`^(?:[2-5][xX]{2}|[2-5]\d\d(?:-[2-5]\d\d)?)$`;
const statusPattern = z
  .union([z.int().meta({ minimum: 200, maximum: 599 }), z.string().meta({ pattern: STATUS_PATTERN })], {
    error: 'must be a number or a string',
  })
  .superRefine(withoutFault<StatusPattern>(patternFault))
  .describe('A status (409), a class ("2xx") or a range ("400-404"), of 200 to 599.');
const statuses = z.array(statusPattern).max(100);

export const jsonPointer = z
  .string()
  .max(MAX_TEXT)
  .superRefine(withoutFault((value) => (pointerSteps(value) === null ? 'must be a JSON pointer' : null)))
  .meta({ format: 'json-pointer', maxLength: MAX_TEXT });
const required = z
  .union(
    [
      z.strictObject({ pointer: jsonPointer, equals: z.unknown() }).refine((value) => 'equals' in value, {
        path: ['equals'],
        error: 'is required',
      }),
      z.strictObject({ contains: z.string().min(1).max(MAX_TEXT) }),
    ],
    { error: 'must be an object with "pointer" and "equals", or with "contains"' },
  )
  .nullable();

const fields = { succeed: statuses, retry: statuses, fail: statuses };
const otherwise = z.enum(['retry', 'fail']).nullable();

export const outcome = z
  .strictObject({
    ...withDefaults(fields, { succeed: [], retry: [], fail: [] }),
    require: required.default(null),
    otherwise: otherwise.default(null),
  })
  .superRefine((rules, context) => {
    for (const [path, message] of twiceIn(rules)) context.addIssue({ code: 'custom', path, message });
  })
  .meta({
    id: 'OutcomeRules',
    description:
      'How whole answers are judged: statuses that count as handed off (`succeed`), as "try again" (`retry`) and as final ' +
      '(`fail`); a status in no list is judged as without rules. What would have succeeded must have what `require` names in ' +
      'its first 64 KiB; without it, it is `otherwise`: null means retry, and under `atMostOnce` fail. A status in `retry` is ' +
      'sent again under `atMostOnce` too.',
    example: { succeed: [409], require: { pointer: '/success', equals: true } },
  })
  .nullable();
export const patchedOutcome = z
  .strictObject({
    ...nullish(fields),
    require: z
      .strictObject({
        pointer: jsonPointer.nullish(),
        equals: z.unknown().optional(),
        contains: z.string().nullish(),
      })
      .nullish(),
    otherwise: otherwise.optional(),
  })
  .nullish();
export const answeredOutcome = z
  .object({
    ...fields,
    require: z
      .union([z.object({ pointer: jsonPointer, equals: z.unknown() }), z.object({ contains: z.string() })])
      .nullable(),
    otherwise,
  })
  .meta({ id: 'AnsweredOutcomeRules', description: 'How whole answers are judged.' })
  .nullable();

/** Faults of the fields together. As a target was sent: its fields may be of any type. */
export function bodyFaults(target: Record<string, unknown>): { path: string[]; message: string }[] {
  const { method, headers, body: given } = target;
  if (given === undefined || given === 'envelope') return [];
  if (method === 'GET' || method === 'HEAD')
    return [{ path: ['body'], message: `must not be there with ${method}, which carries none` }];
  const names = isObject(headers) ? Object.keys(headers) : [];
  const typed = names.find((name) => name.toLowerCase() === 'content-type');
  if (!isObject(given) || typed === undefined) return [];
  const message = `must not have ${typed}: the content type stands in body.contentType`;
  return [{ path: ['headers'], message }];
}

/** Of a body that no run with this payload could be sent with. */
export function bodySizeFaults(target: object, payload: string | undefined): Fault[] {
  if (!isTooLongWith(target, payload ?? null)) return [];
  return [{ path: '/target/body/template', message: 'is longer than 1 MiB with this payload' }];
}

/** Each pattern that matches a status of an earlier one. */
function twiceIn(rules: Pick<OutcomeRules, 'succeed' | 'retry' | 'fail'>): [(string | number)[], string][] {
  const all = (['succeed', 'retry', 'fail'] as const).flatMap((list) =>
    rules[list].map((pattern, index) => ({ list, index, pattern })),
  );
  return all.flatMap(({ list, index, pattern }, at) => {
    const before = all.slice(0, at).find((other) => overlap(other.pattern, pattern));
    if (before === undefined) return [];
    return [[[list, index], `has a status that ${before.list}/${before.index} has too`]];
  });
}
