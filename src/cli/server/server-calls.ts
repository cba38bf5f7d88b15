import { stringify } from '../../api/http/json/raw-json.ts';
import { parseKeepingDigits } from '../../core/json-text.ts';
import { problemOf } from '../../schedules-file/apply/caller.ts';
import { CliError, EXIT, failure, usageError } from '../exit-codes.ts';
import { printable } from '../terminal/shown-text.ts';

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Request {
  query?: Query;
  /** A tree, with RawJson for parts that must stay byte for byte; or JSON text as a whole. */
  body?: unknown;
  /** A body of plain text, in its place. */
  bytes?: Uint8Array<ArrayBuffer>;
  /** Ends this call, in the place of what ends the command. */
  signal?: AbortSignal;
  headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  /** As the server wrote it. */
  readonly text: string;
  readonly bytes: Buffer;
  header(name: string): string | null;
  readonly etag: string | null;
  /** The server's clock, in whole seconds; null: the server did not give it. */
  readonly date: number | null;
  /** The parsed text; numbers keep their digits. */
  body(): unknown;
}

export interface Server {
  readonly url: string;
  /** @throws CliError for every answer that is not 2xx, and if there is no answer */
  call(method: string, path: string, request?: Request): Promise<Answer>;
  /** The same, but answers any status. @throws CliError if there is no answer */
  ask(method: string, path: string, request?: Request): Promise<Answer>;
  /** As call, but answers null if the thing does not exist (404). */
  find(path: string, request?: Request): Promise<Answer | null>;
}

interface Options {
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  version: string;
}

const STANDARD_URL = 'http://127.0.0.1:8080';

/** The server at FIRELOCK_URL. Nothing is sent yet. @throws CliError if the URL or the token cannot be sent */
export function connectTo({ env, signal, version }: Options): Server {
  const { FIRELOCK_URL = '', FIRELOCK_TOKEN = '' } = env;
  const url = baseOf(FIRELOCK_URL === '' ? STANDARD_URL : FIRELOCK_URL);
  const token = tokenOf(FIRELOCK_TOKEN);
  const send = async (method: string, path: string, request: Request = {}): Promise<Answer> => {
    const { body, bytes, headers = {}, signal: ending = signal } = request;
    const sent = {
      method,
      signal: ending,
      // Follows no redirect: a token belongs to the server that was named, and a POST must stay a POST.
      redirect: 'manual',
      headers: {
        accept: 'application/json',
        'user-agent': `firelock-cli/${version}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(bytes === undefined ? {} : { 'content-type': 'text/plain' }),
        ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? (bytes === undefined ? {} : { body: bytes }) : { body: stringify(body) }),
    } as const;
    return answerOf(url, () => fetch(`${url}/api/v1/${path}${queryText(request.query)}`, sent), ending);
  };
  const refused = ({ status, text }: Answer) => refusal(status, text, { hasToken: token !== '' });
  return {
    url,
    ask: send,
    call: async (method, path, request) => {
      const answer = await send(method, path, request);
      if (!isDone(answer)) throw refused(answer);
      return answer;
    },
    find: async (path, request) => {
      const answer = await send('GET', path, request);
      if (answer.status === 404) return null;
      if (!isDone(answer)) throw refused(answer);
      return answer;
    },
  };
}

/** A path below /api/v1 from these segments, whatever they contain. */
export function pathOf(...segments: string[]): string {
  return segments.map((segment) => encodeURIComponent(segment)).join('/');
}

function isDone({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/** Keeps a base path; also accepts a link to the API itself. */
function baseOf(text: string): string {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw usageError('FIRELOCK_URL is not the URL of a server, such as http://127.0.0.1:8080');
  }
  if (url.username !== '' || url.password !== '') {
    throw usageError('FIRELOCK_URL must not contain a user or a password; a token goes into FIRELOCK_TOKEN');
  }
  const path = url.pathname.replace(/\/+$/, '').replace(/\/api\/v1$/, '');
  return url.origin + path;
}

function tokenOf(text: string): string {
  const token = text.trim();
  if (!/^[\x21-\x7e]*$/.test(token)) throw usageError('FIRELOCK_TOKEN contains characters that no token has');
  return token;
}

function queryText(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value])
      if (one !== undefined) parameters.append(name, String(one));
  }
  return parameters.size === 0 ? '' : `?${parameters.toString()}`;
}

async function answerOf(url: string, ask: () => Promise<Response>, signal: AbortSignal): Promise<Answer> {
  try {
    const response = await ask();
    const bytes = await boundedBytes(url, response);
    const text = new TextDecoder().decode(bytes);
    if (response.status >= 300 && response.status < 400) {
      const location = response.headers.get('location') ?? 'elsewhere';
      throw failure(`${url} redirects to ${location}; set FIRELOCK_URL to that address`);
    }
    const date = Date.parse(response.headers.get('date') ?? '');
    return {
      status: response.status,
      ...{ text, bytes },
      header: (name) => response.headers.get(name),
      etag: response.headers.get('etag'),
      date: Number.isNaN(date) ? null : date,
      body: () => bodyOf(url, text),
    };
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (signal.aborted)
      throw new CliError(EXIT.interrupted, 'interrupted; the server may have carried out the request');
    throw new CliError(EXIT.unreachable, `cannot reach ${url}: ${reasonOf(error)}; check FIRELOCK_URL`);
  }
}

/** More than any answer of the API has: of runs that depend on thousands of others a claim tells most. */
const MOST_MIB = 64;

async function boundedBytes(url: string, { body }: Response): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > MOST_MIB * 1024 * 1024) throw failure(`an answer of ${url} has more than ${MOST_MIB} MiB`);
    parts.push(part);
  }
  return Buffer.concat(parts, length);
}

function bodyOf(url: string, text: string): unknown {
  try {
    return parseKeepingDigits(text);
  } catch {
    throw failure(`the server at ${url} is not firelock; check FIRELOCK_URL`);
  }
}

/** `fetch` only says that it failed; its cause says why, or the first of its causes. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  return first instanceof Error ? first.message : String(first);
}

/** The server's refusal in words, with advice that only the caller can follow. */
function refusal(status: number, text: string, env: { hasToken: boolean }): CliError {
  const problem = problemOf(text);
  const said = problem.detail ?? problem.title ?? `the server answered ${status}`;
  const detail = printable(said.replace(/, see errors$/, ''));
  if (status === 404 && (problem.detail ?? NO_ROUTE) === NO_ROUTE)
    return failure(`${detail}; check FIRELOCK_URL, and the base path in it`);
  // The detail already names a single fault.
  const isSaid = problem.faults.length === 1 && detail.includes(problem.faults[0]?.message ?? '');
  const faults = (isSaid ? [] : problem.faults).map(({ path, message }) =>
    printable(`  ${path === '' ? 'body' : path}: ${message}`),
  );
  const lines = [`${advice(status, env)}${detail}`, ...faults];
  return new CliError(exitCodeOf(status), lines.join('\n'));
}

/** The answer of a server that does not have the API at this path, or of an older one that does not know the call. */
export const NO_ROUTE = 'there is nothing at this path';

function exitCodeOf(status: number): CliError['exitCode'] {
  if (status === 404) return EXIT.notFound;
  if (status === 401 || status === 403) return EXIT.notAllowed;
  return [429, 502, 503, 504].includes(status) ? EXIT.unreachable : EXIT.failed;
}

function advice(status: number, { hasToken }: { hasToken: boolean }): string {
  if (status === 401) {
    return hasToken
      ? 'the server does not accept the token in FIRELOCK_TOKEN: '
      : 'the server requires a token; set FIRELOCK_TOKEN: ';
  }
  return status === 403 ? 'this token does not allow this call: ' : '';
}
