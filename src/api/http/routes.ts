import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type {
  FastifyContextConfig,
  FastifySchema,
  HTTPMethods,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Api } from '../deps.ts';
import { PROBLEM_TYPE } from './problem.ts';
import { type AnsweredMoment, runStatus } from './common-schemas.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';

/** The sections of the document. */
export const TAGS = {
  schedules: 'Schedules',
  runs: 'Runs',
  queues: 'Queues',
  limits: 'Limits',
  times: 'Fire times',
  calendars: 'Calendars',
  connections: 'Connections',
  alerts: 'Alerts',
  notifiers: 'Notifiers',
  reports: 'Reports',
  instances: 'Instances',
  signs: 'Signs of life',
} as const;

/** Methods that change nothing. */
export const READING = ['GET', 'HEAD'];

/** Documents an answer; functions with types build the answers, and they are serialised as they are. */
export function json(description: string, schema: z.ZodType) {
  return { description, content: { 'application/json': { schema } } };
}

/** The problems that a call can answer with; for every call of the API, the database can be out of reach. */
export function problems(...statuses: number[]) {
  return Object.fromEntries(
    [...statuses, 500, 503].map((status) => [
      status,
      {
        description: DESCRIPTIONS[status] ?? STATUS_CODES[status],
        content: { [PROBLEM_TYPE]: { schema: problem } },
      },
    ]),
  );
}

interface Sent<Params, Query, Headers, Body> {
  params: Params;
  querystring: Query;
  headers: Headers;
  body: Body;
}

interface Route<Params, Query, Headers, Body>
  extends
    Partial<Sent<Params, Query, Headers, Body>>,
    Pick<FastifySchema, 'operationId' | 'summary' | 'description' | 'tags' | 'consumes' | 'x-body-optional'> {
  /** Its method and its path: `GET /runs/:id`. */
  route: `${HTTPMethods} /${string}`;
  config: FastifyContextConfig;
  /** Bytes. */
  bodyLimit?: number;
  /** Of a call that is done, by status. */
  answers: Readonly<Record<number, object>>;
  /** The statuses of its problems, beside those of any call. */
  refusals?: readonly number[];
  handler: RouteHandlerMethod<
    RawServerDefault,
    IncomingMessage,
    ServerResponse,
    RouteGenericInterface,
    unknown,
    Sent<Params, Query, Headers, Body>,
    ZodTypeProvider
  >;
}

/** A route under `/api/v1`: what the document says of it, what the hooks must know, and what it does. */
export function addRoute<Params = z.ZodType, Query = z.ZodType, Headers = z.ZodType, Body = z.ZodType>(
  api: Api,
  { route, config, bodyLimit, handler, answers, refusals = [], ...said }: Route<Params, Query, Headers, Body>,
): void {
  const [method, url] = route.split(' ') as [HTTPMethods, string];
  const response = { ...answers, ...problems(400, ...(said.body ? [413, 415] : []), ...refusals) };
  const schema = { ...said, response } as Sent<Params, Query, Headers, Body>;
  api.route({ method, url, config, schema, handler, ...(bodyLimit !== undefined && { bodyLimit }) });
}

const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .describe('Every fault, or the first 10,000; `path` is a JSON pointer into the body, or a parameter’s name.'),
    run: z
      .object({ status: runStatus, reason: z.string().nullable(), attempts: z.int() })
      .optional()
      .describe('Where something is not possible with a run: what that is instead.'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457.' });

const DESCRIPTIONS: Record<number, string> = {
  400: 'Malformed or invalid; every fault is listed',
  401: 'No valid token',
  403: 'The role of the token may not make this call',
  404: 'Unknown id',
  408: 'The request took too long to arrive',
  409: 'Not possible in this state',
  412: 'Failed precondition',
  413: 'Body too large',
  415: 'The body is not application/json',
  422: 'Well-formed but impossible',
  429: 'Too many calls; `Retry-After` says when to try again',
  431: 'The request line and the headers are too large, or there are too many headers',
  500: 'An error of the server',
  503: 'The database does not do its work, which `detail` says why, or too many slow calls wait already; `Retry-After` says when to try again',
};

/** An answer without a body. */
export function nothing(description: string) {
  return z.null().meta({ description });
}

/** What is stored under the names of an answer's fields: moments as instants. */
type StoredAs<Answer> = { readonly [Name in keyof Answer]: StoredValue<Answer[Name]> };
type StoredValue<Value> = Value extends AnsweredMoment
  ? 'isMoment' extends keyof Value
    ? Instant
    : Value
  : Value extends readonly (infer Item)[]
    ? readonly Item[]
    : Value extends object
      ? Readonly<Value>
      : Value;

/** Makes answers of what is stored: the fields of the schema and no others, moments in ISO 8601. */
export function answersOf<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>) {
  type Answer = z.output<z.ZodObject<Shape>>;
  const fields = Object.entries(schema.shape).map(([name, field]) => [name, isMoment(field)] as const);
  return (stored: StoredAs<Answer>): Answer => {
    const values = stored as Readonly<Record<string, unknown>>;
    const answered = fields.map(([name, asMoment]) => {
      const value = values[name];
      return [name, asMoment && typeof value === 'number' ? isoInstant(value) : value] as const;
    });
    return Object.fromEntries(answered) as Answer;
  };
}

function isMoment(field: unknown): boolean {
  if (field instanceof z.ZodNullable || field instanceof z.ZodOptional) return isMoment(field.unwrap());
  return field instanceof z.ZodType && field.meta()?.['format'] === 'date-time';
}
