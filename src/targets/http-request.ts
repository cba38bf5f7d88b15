import { type KeyObject, createHmac, createSecretKey } from 'node:crypto';
import { canBeSent, headerFault, isReservedHeader } from '../core/http/header-rules.ts';
import { type CompiledBody, compileBody } from '../core/http/body-template.ts';
import { type Sender, ownHeaders } from '../core/http/own-headers.ts';
import { type PreparedBody, carriedBody, contentTypeOf, writeBody } from '../core/http/request-body.ts';
import { hasTemplate, originOf, renderTemplate } from '../core/http/template.ts';
import type { BodyTemplate, HttpCall, HttpMethod, HttpTarget } from '../core/schedules/schedule.ts';
import { WEBHOOK_SECRET_RULE, webhookKey } from '../core/secrets/webhook-secret.ts';
import type { Attempt } from './target.ts';

export interface HttpRequest {
  origin: string;
  /** Path and query, as they are sent. */
  path: string;
  method: HttpMethod;
  /** Names and values in turn. */
  headers: string[];
  body: string | null;
}

/** The parts that are computed once per target, or per call beside it. */
export interface PreparedTarget {
  /** Null if the URL contains templates. */
  address: Address | null;
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

/** @throws TypeError if the URL, a header or the secret cannot be sent over HTTP */
export function prepareTarget(target: HttpTarget<string>): PreparedTarget {
  return prepare(target, carriedBody(target.method, target.body), signingKeys(target.secret));
}

/**
 * Beside the handoff itself, and without a body. The secret belongs to the origin of the target's URL: a call to another
 * origin is not signed, for a server there could send the signed request on to the target. @throws TypeError as above.
 */
export function prepareCall(call: HttpCall<string>, target: HttpTarget<string>): PreparedTarget {
  const secret = originOf(call.url) === originOf(target.url) ? target.secret : null;
  return prepare(call, 'none', signingKeys(secret));
}

/** @throws TypeError or URIError if the rendered URL is none, or no header can carry a rendered value */
export function buildRequest(prepared: PreparedTarget, attempt: Attempt, sender: Sender): HttpRequest {
  const address = prepared.address ?? parseAddress(renderTemplate(prepared.url, attempt, encodeURIComponent));
  const body = writeBody(prepared.body, attempt);
  const { origin, path } = address;
  return {
    origin,
    path,
    method: prepared.method,
    headers: buildHeaders(prepared, attempt, sender, body),
    body,
  };
}

/** @throws TypeError */
export function parseAddress(text: string): Address {
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError('not an http or https URL');
  return { origin: url.origin, path: url.pathname + url.search };
}

function prepare(
  target: HttpCall<string>,
  body: HttpTarget['body'] | 'none',
  keys: SigningKeys,
): PreparedTarget {
  const headers = Object.entries(target.headers)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !isReservedHeader(name));
  for (const [name, value] of headers) {
    const fault = headerFault(name, value);
    if (fault !== null) throw new TypeError(`${JSON.stringify(name)} ${fault}`);
  }
  const address = hasTemplate(target.url) ? null : parseAddress(target.url);
  return {
    address,
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

function compiledBody(body: BodyTemplate): CompiledBody {
  const compiled = compileBody(body);
  if ('fault' in compiled) throw new TypeError(`the body ${compiled.fault}`);
  return compiled;
}

function buildHeaders(
  prepared: PreparedTarget,
  attempt: Attempt,
  sender: Sender,
  body: string | null,
): string[] {
  const headers = ownHeaders(attempt, sender);
  if (prepared.keys.length > 0) {
    const timestamp = String(Math.floor(sender.now / 1000));
    const signed = `${attempt.runId}.${timestamp}.${body ?? ''}`;
    headers.push('webhook-signature', signatureOf(prepared.keys, signed));
  }
  for (const [name, value] of prepared.headers) headers.push(name, rendered(name, value, attempt));
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
