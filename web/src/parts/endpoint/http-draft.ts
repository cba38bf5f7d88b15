import type { AnsweredHttpTarget } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { type Pair, twice, typedPairs } from '../forms/pair.ts';
import {
  EMPTY_ENDPOINT,
  type EndpointDraft,
  type Fault,
  endpointDraftOf,
  endpointFaults,
  endpointOf,
  linesOf,
} from './endpoint-draft.ts';

/** What is typed so far of an HTTP target. */
export interface HttpDraft extends EndpointDraft {
  /** Empty: none. */
  connection: string;
  url: string;
  method: string;
  headers: readonly Pair[];
  /** One a line, two at most. */
  secret: string;
  lookupUrl: string;
  cancelUrl: string;
}

export const EMPTY_HTTP: HttpDraft = {
  ...{ connection: '', url: '', method: 'POST', headers: [], secret: '', lookupUrl: '', cancelUrl: '' },
  ...EMPTY_ENDPOINT,
};

export function httpDraftOf(target: AnsweredHttpTarget): HttpDraft {
  const { connection, url, method, headers, secret, lookup, cancel } = target;
  return {
    connection: connection ?? '',
    url,
    method,
    headers: Object.entries(headers),
    secret: [secret ?? []].flat().join('\n'),
    lookupUrl: lookup?.url ?? '',
    cancelUrl: cancel?.url ?? '',
    ...endpointDraftOf(target),
  };
}

/** What to send. What the form has no field for goes as it is in `kept`. */
export function httpTargetOf(draft: HttpDraft, kept: AnsweredHttpTarget | null): Record<string, unknown> {
  const { url, method } = draft;
  const called = (text: string, name: 'lookup' | 'cancel') =>
    text === '' ? null : { ...(kept?.[name] ?? {}), url: text };
  const secrets = linesOf(draft.secret);
  return {
    ...kept,
    type: 'http',
    connection: draft.connection.trim() || null,
    url,
    method,
    headers: Object.fromEntries(typedPairs(draft.headers)),
    ...endpointOf(draft, kept),
    secret: secrets.length > 1 ? secrets : (secrets[0] ?? null),
    lookup: called(draft.lookupUrl, 'lookup'),
    cancel: called(draft.cancelUrl, 'cancel'),
  };
}

/** What cannot be sent at all, and so the daemon cannot say. */
export function httpFaults(draft: HttpDraft): Fault[] {
  return [
    ...twice(draft.headers, '/target/headers'),
    ...twice([...draft.bodySecrets.values, ...draft.bodySecrets.files], '/target/body/secrets'),
    ...endpointFaults(draft),
  ];
}
