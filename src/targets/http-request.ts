import { type KeyObject, createHmac, createSecretKey } from 'node:crypto';
import type { Connection } from '../core/connections/connection.ts';
import { joinBelow } from '../core/connections/join-url.ts';
import { type HeaderPlace, canBeSent, headerFault, isReservedHeader } from '../core/http/header-rules.ts';
import { type CompiledBody, compileBody } from '../core/http/body-template.ts';
import { type Sender, ownHeaders } from '../core/http/own-headers.ts';
import { type PreparedBody, carriedBody, contentTypeOf, writeBody } from '../core/http/request-body.ts';
import { hasTemplate, renderTemplate } from '../core/http/template.ts';
import {
  type BodyTemplate,
  type HttpCall,
  type HttpMethod,
  type HttpTarget,
  destinationOf,
} from '../core/schedules/schedule.ts';
import { WEBHOOK_SECRET_RULE, webhookKey } from '../core/secrets/key-ring.ts';
import type { Attempt } from './target.ts';

/** All of a request that its body does not decide. */
export interface RequestHead {
  origin: string;
  /** Path and query, as they are sent. */
  path: string;
  method: HttpMethod;
  /** Names and values in turn. */
  headers: readonly string[];
}

export interface HttpRequest extends RequestHead {
  headers: string[];
  body: string | null;
}

/** A request that is finished when there is a connection for it: while it waits, its body takes no memory. */
export interface BegunRequest {
  head: RequestHead;
  /** @throws BodyTooLong */
  finish(): HttpRequest;
}

/** The parts that are computed once per target, or per call beside it. */
export interface PreparedTarget {
  /** Null if the URL contains templates. */
  address: Address | null;
  /** The URL of the connection; null: there is none. */
  base: string | null;
  url: string;
  method: HttpMethod;
  headers: (readonly [name: string, value: string])[];
  body: PreparedBody;
  /** Of the body; null: it has none, or the headers say it. */
  contentType: string | null;
  /** Empty: nothing is signed. */
  keys: SigningKeys;
}

interface Address {
  origin: string;
  path: string;
}

/** @throws TypeError if the URL, a header or the secret cannot be sent over HTTP, or the path leads out of the connection */
export function prepareTarget(target: HttpTarget<string>, connection: Connection<string> | null): PreparedTarget {
  const body = carriedBody(target.method, target.body);
  return prepare(target, { connection, body, keys: signingKeys(target.secret) });
}

/**
 * Beside the handoff itself, and without a body. The secret belongs to the origin of the target's URL: a call to another
 * origin is not signed, for a server there could send the signed request on to the target. @throws TypeError as above.
 */
export function prepareCall(
  call: HttpCall<string>,
  target: HttpTarget<string>,
  connection: Connection<string> | null,
): PreparedTarget {
  const destination = (url: string) => destinationOf(target.connection, url);
  const secret = destination(call.url) === destination(target.url) ? target.secret : null;
  return prepare(call, { connection, body: 'none', keys: signingKeys(secret) });
}

interface Sending extends Sender {
  /** By which the connection logs in, if it does so by OAuth; absent: otherwise. */
  accessToken?: string;
}

/** @throws TypeError or URIError if the rendered URL is none, or no header can carry a rendered value */
export function beginRequest(prepared: PreparedTarget, attempt: Attempt, sender: Sending): BegunRequest {
  const { origin, path } =
    prepared.address ?? addressOf(prepared.base, renderTemplate(prepared.url, attempt, encodeURIComponent));
  const head = { origin, path, method: prepared.method, headers: buildHeaders(prepared, attempt, sender) };
  const finish = () => {
    const body = writeBody(prepared.body, attempt);
    return { ...head, headers: [...head.headers, ...headersOfBody(prepared, attempt, sender, body)], body };
  };
  return { head, finish };
}

/** Made once for each call and each state of its connection. */
export function remembered(
  { call, prepare }: { call: HttpCall<string>; prepare: () => PreparedTarget },
  connection: Connection<string> | null,
): PreparedTarget {
  const known = (call as Remembering)[PREPARED];
  if (known?.connection === connection) return known.prepared;
  const prepared = prepare();
  // Not enumerable: a changed copy of the call must not take it along. Not a WeakMap: with a key for each of 10,000
  // targets, that is a good part of the cost of garbage collection.
  Object.defineProperty(call, PREPARED, { value: { connection, prepared }, configurable: true });
  return prepared;
}

const PREPARED = Symbol('prepared');

interface Remembering {
  [PREPARED]?: { connection: Connection<string> | null; prepared: PreparedTarget };
}

/** @throws TypeError */
export function parseAddress(text: string): Address {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not an http or https URL');
  return { origin: url.origin, path: url.pathname + url.search };
}

function addressOf(base: string | null, url: string): Address {
  return base === null ? parseAddress(url) : joinBelow(base, url);
}

interface Preparing {
  connection: Connection<string> | null;
  body: HttpTarget<string>['body'] | 'none';
  keys: SigningKeys;
}

function prepare(target: HttpCall<string>, { connection, body, keys }: Preparing): PreparedTarget {
  const added = connection === null ? {} : headersOf(connection);
  const lower = (given: Record<string, string>) =>
    Object.entries(given).map(([name, value]) => [name.toLowerCase(), value] as const);
  // What the connection adds cannot be overridden.
  const given = sendable(lower(added), 'connection');
  const taken = new Set(given.map(([name]) => name));
  if (connection !== null && connection.auth !== null) taken.add(AUTHORIZATION);
  const own = lower(target.headers).filter(([name]) => !taken.has(name));
  const headers = [...sendable(own, 'call'), ...given];
  const base = connection?.url ?? null;
  const address = hasTemplate(target.url) ? null : addressOf(base, target.url);
  return {
    address,
    base,
    url: target.url,
    method: target.method,
    headers,
    body: typeof body === 'string' ? body : compiledBody(body),
    contentType: contentTypeOf(
      body,
      headers.map(([name]) => name),
    ),
    keys,
  };
}

/** Without those that another version let users set. @throws TypeError */
function sendable(headers: PreparedTarget['headers'], place: HeaderPlace): PreparedTarget['headers'] {
  const free = headers.filter(([name]) => !isReservedHeader(name, place));
  for (const [name, value] of free) {
    const fault = headerFault(name, value, place);
    if (fault !== null) throw new TypeError(`${JSON.stringify(name)} ${fault}`);
  }
  return free;
}

/** What the connection adds to each request; the access token of OAuth comes to it when it is sent. */
function headersOf({ headers, auth }: Connection<string>): Record<string, string> {
  switch (auth?.type) {
    case 'bearer':
      return { ...headers, [AUTHORIZATION]: `Bearer ${auth.token}` };
    case 'basic': {
      const credentials = Buffer.from(`${auth.username}:${auth.password}`).toString('base64');
      return { ...headers, [AUTHORIZATION]: `Basic ${credentials}` };
    }
    case 'oauth2':
    case undefined:
      return headers;
  }
}

const [AUTHORIZATION, USER_AGENT] = ['authorization', 'user-agent'] as const;

function compiledBody(body: BodyTemplate): CompiledBody {
  const compiled = compileBody(body);
  if ('fault' in compiled) throw new TypeError(`the body ${compiled.fault}`);
  return compiled;
}

function buildHeaders(prepared: PreparedTarget, attempt: Attempt, sender: Sending): string[] {
  const agent = prepared.headers.find(([name]) => name === USER_AGENT)?.[1] ?? sender.userAgent;
  const headers = ownHeaders(attempt, { ...sender, userAgent: rendered(USER_AGENT, agent, attempt) });
  for (const [name, value] of prepared.headers)
    if (name !== USER_AGENT) headers.push(name, rendered(name, value, attempt));
  if (sender.accessToken !== undefined) headers.push(AUTHORIZATION, `Bearer ${sender.accessToken}`);
  return headers;
}

function headersOfBody(prepared: PreparedTarget, { runId }: Attempt, { now }: Sending, body: string | null): string[] {
  const headers: string[] = [];
  if (prepared.keys.length > 0) {
    const timestamp = String(Math.floor(now / 1000));
    headers.push('webhook-signature', signatureOf(prepared.keys, `${runId}.${timestamp}.${body ?? ''}`));
  }
  // Servers refuse an empty body that claims to be JSON.
  if (prepared.contentType !== null && body !== '') headers.push('content-type', prepared.contentType);
  return headers;
}

/** The stored value was checked, and the rendered one is checked too: a value must not become two headers. */
function rendered(name: string, value: string, attempt: Attempt): string {
  if (!hasTemplate(value)) return value;
  const text = renderTemplate(value, attempt);
  if (!canBeSent(text)) throw new TypeError(`the header ${JSON.stringify(name)} cannot carry its value`);
  return text;
}

/** In the order of the secrets. */
type SigningKeys = readonly KeyObject[];

/** @throws TypeError if a secret is invalid; only another program can store such a secret */
function signingKeys(secret: string | readonly string[] | null): SigningKeys {
  if (secret === null) return NO_KEYS;
  return [secret].flat().map((one) => {
    const bytes = webhookKey(one);
    if (bytes === null) throw new TypeError(`the secret is not ${WEBHOOK_SECRET_RULE}`);
    return createSecretKey(bytes);
  });
}

const NO_KEYS: SigningKeys = [];

/** As Standard Webhooks defines it: one signature for each key. `signed` is `id.timestamp.body`. */
function signatureOf(keys: SigningKeys, signed: string): string {
  return keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ');
}
