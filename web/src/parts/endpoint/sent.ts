import type { Connection } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { joinBelow } from '../../../../src/core/connections/join-url.ts';
import { compileBody, readContentType } from '../../../../src/core/http/body-template.ts';
import { ownHeaders } from '../../../../src/core/http/own-headers.ts';
import { carriedBody, contentTypeOf, writeBody } from '../../../../src/core/http/request-body.ts';
import { renderTemplate, templateFault } from '../../../../src/core/http/template.ts';
import { faultOfJson } from '../../api/json.ts';
import { escaped } from '../differences/difference.ts';
import { secretsOf } from '../forms/pair.ts';
import type { Fault } from './endpoint-draft.ts';
import type { HttpDraft } from './http-draft.ts';

/** The request of a run, as far as it can be told in advance. */
export interface Sent {
  method: string;
  url: string;
  /** Of the user and of the connection, and the content type. */
  headers: readonly (readonly [name: string, value: string])[];
  /** Names of those that firelock adds. */
  own: readonly string[];
  /** Null: none is sent, or `unknown` says why it cannot be told. */
  body: string | null;
  unknown: string | null;
  /** Of the templates, in the daemon's words. */
  faults: readonly Fault[];
}

export type Added = Pick<Connection, 'url' | 'headers' | 'auth'>;

/** `values`: of the sample run. `connection`: the one that is named; null: none is, or it cannot be read. */
export function requestOf(draft: HttpDraft, values: Values, connection: Added | null = null): Sent {
  const added = connection === null ? [] : addedBy(connection);
  const typed = draft.headers.map(([name]) => name.toLowerCase());
  const names = [...typed.filter((name) => name !== '' && !added.includes(name)), ...added];
  const carried = carriedBody(draft.method, givenBody(draft));
  const written = writtenBody(carried, values);
  const type = written.body === '' ? null : contentTypeOf(carried, names);
  const own = ownHeaders(values, { now: values.scheduledFor, userAgent: '', spanId: '' }).filter(
    (_, at) => at % 2 === 0,
  );
  return {
    method: draft.method,
    url: placed(draft.connection.trim(), connection, renderTemplate(draft.url, values, encoded)),
    headers: [
      ...names.map((name) => [name, '***'] as const),
      ...(type === null ? [] : [['content-type', type] as const]),
    ],
    own: draft.secret.trim() === '' ? own : [...own, 'webhook-signature'],
    ...written,
    faults: faultsIn(draft),
  };
}

function givenBody({ bodyKind, template, contentType, bodySecrets }: HttpDraft) {
  if (bodyKind !== 'template') return bodyKind;
  const secrets = Object.fromEntries(Object.keys(secretsOf(bodySecrets)).map((name) => [name, '***']));
  return { template, contentType: contentType.trim() || DEFAULT_TYPE, secrets };
}

const DEFAULT_TYPE = 'application/json';

/** What a run says of itself. */
export type Values = Parameters<typeof writeBody>[1];
type Carried = ReturnType<typeof carriedBody>;

function writtenBody(carried: Carried, values: Values): Pick<Sent, 'body' | 'unknown'> {
  const compiled = typeof carried === 'string' ? carried : compileBody(carried);
  if (typeof carried === 'object' && carried.template === '') return { body: null, unknown: 'Its text is empty.' };
  if (typeof compiled === 'object' && 'fault' in compiled)
    return { body: null, unknown: 'Its body cannot be filled in: what is wrong is said beside its text.' };
  if (carried !== 'none' && values.payload !== null && faultOfJson(values.payload) !== null)
    return { body: null, unknown: 'The payload is not JSON.' };
  try {
    return { body: writeBody(compiled, values), unknown: null };
  } catch (error) {
    // It is too long; or this browser cannot keep the digits of numbers, as older ones cannot.
    return { body: null, unknown: `It cannot be shown: ${String(error)}` };
  }
}

/** In the letters and the order in which they are sent: a header of the target with such a name is left out. */
function addedBy({ headers, auth }: Added): string[] {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  return auth === null ? names : [...names, 'authorization'];
}

function placed(id: string, connection: Added | null, text: string): string {
  if (id === '') return addressOf(text);
  if (connection === null) return `(URL of the connection ${id})${text}`;
  try {
    const { origin, path } = joinBelow(connection.url, text);
    return origin + path;
  } catch {
    // As it is typed: the path is refused when it is saved.
    return connection.url + text;
  }
}

/** Half a character may be typed so far. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** As a URL is sent, or as it is typed while it is none. */
function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url ? url.origin + url.pathname + url.search : text;
}

/** A template that nothing is typed of yet is refused when it is saved. */
function faultsIn(draft: HttpDraft): Fault[] {
  const at = (path: string, message: string | null) => (message === null ? [] : [{ path, message }]);
  return [
    ...at('/target/url', templateFault(draft.url)),
    ...draft.headers.flatMap(([name, value]) => at(`/target/headers/${escaped(name)}`, templateFault(value, true))),
    ...(draft.bodyKind === 'template' && draft.template !== '' ? bodyFaults(draft) : []),
  ];
}

function bodyFaults(draft: HttpDraft): Fault[] {
  const body = givenBody(draft);
  const compiled = typeof body === 'string' ? [] : compileBody(body);
  if (typeof body === 'string' || !('fault' in compiled)) return [];
  const name = 'fault' in readContentType(body.contentType) ? 'contentType' : 'template';
  return [{ path: `/target/body/${name}`, message: compiled.fault }];
}
