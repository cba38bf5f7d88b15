import { gunzipSync } from 'node:zlib';
import { request as requestOf } from 'undici';

/** An answer of the API as it came. */
interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

export interface Answer extends Reply {
  /** Parsed, where it is JSON; else the text. */
  body: unknown;
}

export interface Request {
  /** Bytes and texts go as they are, anything else as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  /** After so long it rejects; unless given, it waits for ever. */
  limitMs?: number;
}

/** One request; it rejects where no answer comes. Not by `fetch`, which takes several times as long for it. */
export async function send(url: string, method: string, request: Request = {}): Promise<Reply> {
  const { body, headers = {}, limitMs } = request;
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const answer = await requestOf(url, {
    method,
    headers: { 'accept-encoding': 'gzip', ...type, ...headers },
    body: body === undefined ? null : bytesOf(body),
    signal: limitMs === undefined ? null : AbortSignal.timeout(limitMs),
  });
  const answered = new Headers();
  for (const [name, values = []] of Object.entries(answer.headers))
    for (const value of [values].flat()) answered.append(name, value);
  const text =
    answered.get('content-encoding') === 'gzip' && method !== 'HEAD'
      ? gunzipSync(await answer.body.bytes()).toString()
      : await answer.body.text();
  return { status: answer.statusCode, headers: answered, text };
}

/** As send(), with the answer parsed. */
export async function call(url: string, method: string, request: Request = {}): Promise<Answer> {
  const reply = await send(url, method, request);
  const isJson = reply.headers.get('content-type')?.includes('json') === true && reply.text !== '';
  return { ...reply, body: isJson ? (JSON.parse(reply.text) as unknown) : reply.text };
}

/** What is answered; rejects unless it is a success. With a body it is a POST. */
export async function callApi(url: string, body?: object): Promise<unknown> {
  const reply = await sendGood(url, body ? 'POST' : 'GET', body);
  return JSON.parse(reply.text);
}

/** As send(); rejects unless it is a success. */
export async function sendGood(url: string, method: string, body?: object): Promise<Reply> {
  const reply = await send(url, method, { body });
  if (reply.status >= 300) throw new Error(`${method} ${url} answered ${reply.status}: ${reply.text.slice(0, 500)}`);
  return reply;
}

/** Whether the daemon there is ready, in its own words; one that does not answer is not. */
export async function isReady(url: string): Promise<boolean> {
  const reply = await send(`${url}/readyz`, 'GET', { limitMs: 2_000 }).catch(() => null);
  return reply?.status === 200;
}

function bytesOf(body: unknown): string | Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body);
}
