import { type Firelock, OPERATIONS } from './generated/operations.gen.ts';
import { JsonText, parseJson, stringifyJson } from './json-text.ts';
import type { CallOptions, Operation } from './operation.ts';
import { Problem } from './problem.ts';

export interface ClientOptions {
  /** Where the daemon is, with its base path if it has one: `https://ops.example/cron`. */
  url: string;
  /** For each call; or a function that is asked for it before each call. */
  token?: string | (() => string | Promise<string>);
  /** Of a whole call, 90 s unless set: a claim may wait for 60 s. */
  timeoutMs?: number;
  /** Instead of the global one: for a proxy, for example. */
  fetch?: typeof fetch;
}

const TIMEOUT_MS = 90_000;
/** More than any answer of the API has. */
const MOST_MIB = 64;

const HEADERS = {
  ifMatch: 'if-match',
  ifNoneMatch: 'if-none-match',
  idempotencyKey: 'idempotency-key',
} as const;

/** Any JSON of answers beyond payloads: the differences of `putSchedules` with `dryRun`, and of `tryConnection`. */
const TEXTS = /^(changes\/\d+\/)?fields\/\d+\/(before|after)$/;

/** Calls the daemon as it is told to, once for each call: it makes no further attempts. @throws TypeError on a wrong URL */
export function createClient(options: ClientOptions): Firelock {
  const caller = createCaller(options);
  const methods = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (input?: Parameters, callOptions?: CallOptions) => caller(operation, input, callOptions),
  ]);
  return Object.fromEntries(methods) as Firelock;
}

export type Caller = (operation: Operation, input?: Parameters, options?: CallOptions) => Promise<unknown>;

/** For operations by what they are, and not by their names. */
export function createCaller(options: ClientOptions): Caller {
  const settings = { ...options, url: baseOf(options.url) };
  return (operation, input, callOptions) => call(settings, operation, input, callOptions);
}

/** For `idempotencyKey` and `key`: keep it, and a call whose answer was lost can be made again without doing it twice. */
export function newIdempotencyKey(): string {
  return crypto.randomUUID();
}

type Parameters = Readonly<Record<string, unknown>>;

async function call(
  { url, token, fetch: send = fetch, timeoutMs = TIMEOUT_MS }: ClientOptions,
  operation: Operation,
  { body, ...parameters }: Parameters = {},
  options: CallOptions = {},
): Promise<unknown> {
  const { address, headers } = place(url, operation, parameters);
  if (body !== undefined) headers.set('content-type', operation.bodyType ?? 'application/json');
  const secret = typeof token === 'function' ? await token() : token;
  if (secret !== undefined) headers.set('authorization', `Bearer ${secret}`);
  const limit = AbortSignal.timeout(options.timeoutMs ?? timeoutMs);
  const response = await send(address, {
    method: operation.method,
    headers,
    ...(body !== undefined && { body: textOfBody(operation, body) }),
    signal: options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]),
    // A redirect would turn a POST into a GET.
    redirect: 'manual',
  });
  const { status } = response;
  options.onAnswer?.({ status, headers: response.headers });
  const text = await textOfAnswer(response);
  if (response.ok || operation.alsoGood?.includes(status) === true) return answerOf(response, text);
  throw problemOf(response, text);
}

/** The parameters of an operation, where they belong. What is neither path nor header is a parameter of the query. */
function place(
  url: string,
  { path, method }: Operation,
  parameters: Parameters,
): { address: string; headers: Headers } {
  const headers = new Headers({ accept: 'application/json, application/problem+json, text/plain' });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null || path.includes(`{${name}}`)) continue;
    if (isHeader(name)) headers.set(HEADERS[name], typeof value === 'number' ? `"${value}"` : textOf(value));
    else for (const one of [value].flat()) query.append(name, textOf(one));
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segmentOf(name, parameters[name], method));
  const search = query.toString();
  return { address: `${url}${filled}${search === '' ? '' : `?${search}`}`, headers };
}

function isHeader(name: string): name is keyof typeof HEADERS {
  return Object.hasOwn(HEADERS, name);
}

/** An id that is empty or made of dots would make it another path. */
function segmentOf(name: string, value: unknown, method: string): string {
  const text = textOf(value);
  if (/^\.{0,2}$/.test(text)) throw new TypeError(`${name} is missing: ${method} would go to another path`);
  return encodeURIComponent(text);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toISOString();
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

function textOfBody({ bodyType }: Operation, body: unknown): string {
  return bodyType === 'text/plain' ? textOf(body) : stringifyJson(body, checked);
}

/** What is no JSON could become other fields of the body. */
function checked({ text }: JsonText): string {
  JSON.parse(text);
  return text;
}

/** Read bit by bit, so that one without an end ends. */
async function textOfAnswer({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  const reader = (body as ReadableStream<Uint8Array> | null)?.getReader();
  let text = '';
  for (let length = 0; reader !== undefined;) {
    const { value } = await reader.read();
    if (value === undefined) break;
    length += value.length;
    if (length > MOST_MIB * 1024 * 1024) {
      await reader.cancel();
      throw new Error(`the answer has more than ${MOST_MIB} MiB`);
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function answerOf({ status, headers }: Response, text: string): unknown {
  if (status === 204) return undefined;
  return isJson(headers) ? parseJson(text, TEXTS) : text;
}

function problemOf({ status, headers, type }: Response, text: string): Problem {
  const isRedirect = type === 'opaqueredirect' || (status >= 300 && status < 400);
  if (isRedirect) {
    const detail = `redirected to ${headers.get('location') ?? 'another address'}: give the client that address`;
    return new Problem({ status, headers, body: null, text: detail });
  }
  let body: unknown = null;
  try {
    if (isJson(headers)) body = JSON.parse(text);
  } catch {
    // Cut off, or from a proxy that says what is not so.
  }
  return new Problem({ status, headers, body, text });
}

function isJson(headers: Headers): boolean {
  return headers.get('content-type')?.includes('json') === true;
}

/** Without a slash at its end. */
function baseOf(text: string): string {
  const url = new URL(text);
  const isPlain = url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!/^https?:$/.test(url.protocol) || !isPlain) {
    throw new TypeError('url is http or https, with nothing but a path behind the host');
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
