import { z } from 'zod';
import type { ToldReport, ReportKind } from '../../core/runs/observed-report.ts';
import { scheduleIdText } from '../http/common-schemas.ts';
import { problems, TAGS } from '../http/routes.ts';
import { invalid, nothingHere } from '../http/problem.ts';
import { checkValue, parameter } from '../http/validation.ts';

type Said = Pick<ToldReport, 'kind' | 'why'>;

const WORDS: Readonly<Record<string, Said | undefined>> = {
  '': { kind: 'success', why: '' },
  start: { kind: 'start', why: '' },
  fail: { kind: 'failure', why: 'reported as failed' },
  log: { kind: 'log', why: '' },
};

/** What `/ping/KEY/WORD` says. @throws Problem 404 */
function readWord(word: string): Said {
  const said = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  if (said) return said;
  if (!/^(?:0|[1-9]\d{0,2})$/.test(word) || Number(word) > 255) throw nothingHere();
  return Number(word) === 0
    ? { kind: 'success', why: '' }
    : { kind: 'failure', why: `the job ended with exit code ${word}` };
}

const UUID = /^(?:[\da-fA-F]{32}|[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12})$/;

/** In any form that programs write, to the one that is stored. */
const rid = z
  .string()
  .regex(UUID, { error: 'must be a UUID, with or without dashes' })
  .overwrite((text) =>
    text
      .replaceAll('-', '')
      .toLowerCase()
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  )
  .optional()
  .meta({
    description: 'Joins the reports of one execution.',
    example: '0197b6de-0000-7000-8000-00000000abcd',
  });

const pingQuery = z.strictObject({ rid });

/** @throws Problem 400, also for parameters that there are not */
function readQuery(query: unknown): { rid: string | null } {
  return { rid: read(pingQuery, query).rid ?? null };
}

const STATUSES = { in_progress: 'start', ok: 'success', error: 'failure' } as const satisfies Record<
  string,
  ReportKind
>;

/** Sentry's check-in by URL, whose other parameters mean nothing here. */
const checkInQuery = z.object({
  status: z.enum(['in_progress', 'ok', 'error']).meta({ example: 'ok' }),
  check_in_id: rid,
});

/** @throws Problem 400 */
function readCheckIn(query: unknown): Said & { rid: string | null } {
  const { status, check_in_id: checkInId } = read(checkInQuery, query);
  const kind = STATUSES[status];
  return { kind, why: kind === 'failure' ? 'reported as failed' : '', rid: checkInId ?? null };
}

function read<T>(schema: z.ZodType<T>, query: unknown): T {
  const checked = checkValue(schema, query, parameter);
  if ('faults' in checked) throw invalid(checked.faults);
  return checked.value;
}

/** The path as logs show it, without keys, however they are written: anyone who knows a key can report. */
export function withoutPingKeys(url: string): string {
  const plain = url.replace(/%([2-7][\da-f])/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
  const masked = plain.replace(/(\/ping[/?]+|\/api\/\d+\/+cron\/+[^/?#]*\/+)[^/?#]+/gi, '$1***');
  return masked === plain ? url : masked;
}

export const MAX_BODY_BYTES = 100 * 1024;
export const OF_KEY = { burst: 5, perSecond: 5, maxKeys: 10_000 };
export const UNKNOWN_KEYS = { burst: 20, perSecond: 20 / 60, maxKeys: 10_000 };

export interface Ping {
  key: string;
  report: Omit<ToldReport, 'text' | 'whole'>;
  /** Of the schedule that the key must belong to; absent: of any. */
  scheduleId?: string;
}

/** What stands in the path. */
export interface Named {
  key: string;
  word?: string;
  id?: string;
}

export interface PingOperation {
  url: string;
  /** The same, and not in the document. */
  alsoAt?: string;
  name: string;
  summary: string;
  params: z.ZodObject;
  querystring: z.ZodObject;
  /** @throws Problem 400, 404 */
  read: (named: Named, query: unknown) => Ping;
}

const key = z.string().meta({ description: 'The `pingKey` of the schedule.', example: 'Nq7Xc0aB3mFzKp8sVw2LtQ' });
const word = z.string().meta({
  description: '`start`: it began. `fail`: it failed. `log`: only a text. `0` to `255`: it ended with this exit code.',
  example: 'start',
});
const project = z.string().meta({ pattern: '^\\d+$', description: 'Any number.', example: '1' });

const readPing: PingOperation['read'] = ({ key: of, word: said = '' }, query) => ({
  key: of,
  report: { ...readWord(said), ...readQuery(query) },
});

export const PING_OPERATIONS: readonly PingOperation[] = [
  {
    url: '/ping/:key',
    name: 'ping',
    summary: 'The job of an observed schedule has succeeded',
    params: z.strictObject({ key }),
    querystring: pingQuery,
    read: readPing,
  },
  {
    url: '/ping/:key/:word',
    name: 'pingWord',
    summary: 'The job of an observed schedule has begun, failed or ended',
    params: z.strictObject({ key, word }),
    querystring: pingQuery,
    read: readPing,
  },
  {
    url: '/api/:project(^\\d+$)/cron/:id/:key/',
    alsoAt: '/api/:project(^\\d+$)/cron/:id/:key',
    name: 'checkIn',
    summary: 'The job of an observed schedule checks in as it would at Sentry, by URL',
    params: z.strictObject({ project, id: scheduleIdText, key }),
    querystring: checkInQuery,
    read: ({ key: of, id: scheduleId = '' }, query) => ({ key: of, scheduleId, report: readCheckIn(query) }),
  },
];

/** Of all of them. */
export const PING_SCHEMA = {
  tags: [TAGS.reports],
  description:
    'Without a token, and not below `/api/v1`. HEAD does the same as GET. What is due is recorded before. An unknown key: 404. ' +
    `More than ${OF_KEY.perSecond} a second with one key, or ${UNKNOWN_KEYS.burst} a minute with unknown keys from one address, ` +
    'at one instance: 429.',
  response: {
    200: { description: 'It is durable: `OK`', content: { 'text/plain': { schema: z.string() } } },
    ...problems(400, 404, 408, 413, 429, 431),
  },
};

/** The methods, with what each adds to the name, the summary and the schema. */
export const PING_METHODS = [
  { method: 'GET', also: '', said: '', takes: {} },
  {
    method: 'POST',
    also: 'WithText',
    said: ', and says more',
    takes: {
      consumes: ['text/plain'],
      'x-body-optional': true,
      body: z.unknown().meta({
        type: 'string',
        description:
          `Any bytes, at most ${MAX_BODY_BYTES}. The first 4096 become the run's \`result.body\`, or the \`error.message\` of a failure; ` +
          '`expect.result` judges up to 65536.',
      }),
    },
  },
] as const;
