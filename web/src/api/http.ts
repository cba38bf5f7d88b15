import { BASE_PATH } from '../state/base.ts';
import { noteAnswer, noteAway } from '../state/reach.ts';
import { mustLogIn, token } from '../state/session.ts';
import { parseJson, stringifyJson } from './json.ts';
import { inTurn } from './turns.ts';

export interface Fault {
  /** A JSON pointer into the body, or a parameter's name. */
  path: string;
  message: string;
}

/** An answer of the daemon that is not the one hoped for. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly faults: readonly Fault[];

  constructor(status: number, detail: string, faults: readonly Fault[] = []) {
    super(detail);
    this.status = status;
    this.faults = faults;
  }
}

/** There was no answer, or the database is away: the same call may succeed later. */
export class Away extends Error {}

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

interface Answer<T> {
  body: T;
  headers: Headers;
}

interface More {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Of a path below `/api/v1`. Payloads in the answer are JsonText. Throws ApiProblem or Away. */
export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return inTurn(() => call<T>('GET', path, { query, ...(signal && { signal }) }));
}

/** JsonText in the body goes as it is. Throws ApiProblem or Away. */
export async function call<T>(method: string, path: string, more: More = {}): Promise<T> {
  return (await callRaw<T>(method, `/api/v1${path}`, more)).body;
}

/** Of any path of the daemon, such as `/readyz`, which answers 503 with what it has to say. */
export async function callRaw<T>(
  method: string,
  path: string,
  more: More = {},
  good: readonly number[] = [],
): Promise<Answer<T>> {
  const response = await send(method, path, more);
  const text = await response.text().catch(() => {
    throw unreachable();
  });
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
  const body = isJson ? parseJson(text) : text;
  if (response.ok || good.includes(response.status)) {
    noteAnswer(asksDatabase(path));
    return { body: body as T, headers: response.headers };
  }
  throw problemOf(path, response, body);
}

/** What a call answers as bytes; it may wait, and takes no turn. Throws ApiProblem or Away. */
export async function getBytes(path: string, query: Query, signal: AbortSignal): Promise<Answer<Uint8Array>> {
  const response = await send('GET', `/api/v1${path}`, { query, signal });
  if (!response.ok) throw problemOf(path, response, parseJson(await response.text()));
  const bytes = await response.arrayBuffer().catch(() => {
    throw unreachable();
  });
  noteAnswer(true);
  return { body: new Uint8Array(bytes), headers: response.headers };
}

/** The others are answered while the database is away. */
function asksDatabase(path: string): boolean {
  return path.startsWith('/api/v1/') && path !== '/api/v1/me';
}

async function send(method: string, path: string, { query, body, headers, signal }: More): Promise<Response> {
  try {
    return await fetch(`${BASE_PATH}${path}${queryText(query)}`, {
      method,
      headers: {
        ...(token.value !== null && { authorization: `Bearer ${token.value}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: stringifyJson(body) }),
      ...(signal && { signal }),
      cache: 'no-store',
      credentials: 'same-origin',
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw unreachable();
  }
}

function unreachable(): Away {
  noteAway('instance');
  return new Away('This instance does not answer.');
}

function problemOf(path: string, response: Response, body: unknown): Error {
  const problem = (typeof body === 'object' && body !== null ? body : {}) as {
    detail?: string;
    errors?: Fault[];
  };
  const { status } = response;
  if (status === 502 || status === 504) return unreachable();
  if (status === 503) {
    noteAway('database');
    return new Away(`${sentence(problem.detail ?? 'The database is out of reach')}.`);
  }
  noteAnswer(asksDatabase(path));
  if (status === 401) mustLogIn.value = true;
  return new ApiProblem(status, inWords(status, problem.detail, response.headers), problem.errors);
}

function inWords(status: number, detail: string | undefined, headers: Headers): string {
  const said = sentence(detail ?? `The daemon answered ${status}`);
  if (status === 403) return `You may not do this: ${detail ?? 'your role does not allow it'}.`;
  if (status === 412) return `${said}. Somebody has changed it meanwhile: load it again.`;
  if (status === 429) return `${said}. Try again in ${headers.get('retry-after') ?? 'a few'} seconds.`;
  return `${said}.`;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/\.$/, '');
}

/** Empty where there is nothing to say; a list is the same name again and again. */
function queryText(query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === '') continue;
    for (const one of Array.isArray(value) ? (value as readonly string[]) : [value]) params.append(name, String(one));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}
