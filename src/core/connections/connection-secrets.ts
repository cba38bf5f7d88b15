import { type KeyRing, CannotOpen } from '../secrets/key-ring.ts';
import {
  type MapValues,
  type ReadFile,
  type SealedPlace,
  checkChosen,
  isSecretFile,
  keyIdsOf,
  openAt,
  replaceFile,
  resealValues,
  sealValues,
  valueOfFile,
} from '../secrets/sealed-values.ts';
import type { Connection, ConnectionFields, ConnectionAuth, ConnectionTls } from './connection.ts';
import { credentialFault } from './credential-rules.ts';
import { originOf } from '../schedules/schedule.ts';

/**
 * What a credential is bound to: the uid of the connection, the origins on which it depends to whom it goes, and its
 * place. So a person who can write to the database, and has no key, cannot have it sent elsewhere. The name of a file is
 * bound in the same way, as a name: neither stands for the other.
 */
function sealedPlace(uid: string, { steps, origins }: CredentialPlace, what: 'value' | 'file'): SealedPlace {
  const place = steps.map((step) => step.toLowerCase());
  return {
    steps,
    boundTo: JSON.stringify([`firelock connection ${what}`, uid, origins, place]),
  };
}

function urlPlace(uid: string): SealedPlace {
  return { steps: ['url'], boundTo: JSON.stringify(['firelock connection url', uid]), mayStayPlain: true };
}

/** Certificates stay as they are. */
const valuesOf =
  (uid: string): MapValues<ConnectionFields> =>
  (fields, replace) => {
    const url = replace(fields.urlSeal ?? fields.url, urlPlace(uid));
    const urlSeal = typeof url === 'object' ? url : null;
    return mapCredentials({ ...fields, urlSeal }, (value, place) => {
      if (isSecretFile(value)) return replaceFile(value, sealedPlace(uid, place, 'file'), replace);
      if (place.isPublic && typeof value === 'string') return value;
      return replace(value, sealedPlace(uid, place, 'value'));
    });
  };

interface Sealing {
  ring: KeyRing;
  uid: string;
  /** The present fields of the connection; null: there is none. */
  before: ConnectionFields | null;
}

/** See `sealValues`. */
export function sealConnection(
  given: ConnectionFields,
  { ring, uid, before }: Sealing,
): { fields: ConnectionFields; unsealed: SealedPlace[] } {
  const { sealed: fields, unsealed } = sealValues(valuesOf(uid), given, { ring, before });
  return { fields, unsealed };
}

/** See `resealValues`. */
export function resealConnection(ring: KeyRing, connection: Connection): Connection {
  return { ...connection, ...resealValues(valuesOf(connection.uid), connection, ring) };
}

/** The key of each of its encrypted values and names of files. */
export function keyIdsOfConnection(connection: Connection): string[] {
  return keyIdsOf(valuesOf(connection.uid), connection);
}

/** The files that it names, for a caller that reads them before it opens the connection. Each once. */
export function filesNamedIn(connection: Connection): string[] {
  const names = new Set<string>();
  mapCredentials(connection, (value) => isSecretFile(value) && names.add(value.file));
  return [...names];
}

/** The connection in the form in which it is used. @throws CannotOpen, which names the place, such as `/auth/token` */
export function openConnection(ring: KeyRing, stored: Connection, readFile: ReadFile): Connection<string> {
  checkUrl(ring, stored);
  const opened = mapCredentials(stored, (value, place): string => {
    if (isSecretFile(value)) {
      checkChosen(ring, value, sealedPlace(stored.uid, place, 'file'));
      const faultOf = (text: string) => credentialFault(place.steps, text);
      return valueOfFile(value, `/${place.steps.join('/')}`, { readFile, faultOf });
    }
    return place.isPublic && typeof value === 'string'
      ? value
      : openAt(ring, value, sealedPlace(stored.uid, place, 'value'), '');
  });
  return { ...stored, ...opened };
}

function checkUrl(ring: KeyRing, { uid, url, urlSeal }: Connection): void {
  if (urlSeal !== null && openAt(ring, urlSeal, urlPlace(uid), '') !== url)
    throw new CannotOpen('/url is not the one that was chosen: it was changed in the database');
}

/** The place of a credential in a connection. */
export interface CredentialPlace {
  /** The members that lead to it, such as `auth`, `token`. */
  steps: readonly string[];
  /** The origins on which it depends to whom the value goes. */
  origins: readonly (string | null)[];
  /** A certificate: no secret, if it is given as a text. */
  isPublic: boolean;
}

type Replace<A, B> = (value: A, place: CredentialPlace) => B;

/** The fields with each of their credentials replaced. @throws Error for a way to log in that this version does not know */
export function mapCredentials<A, B>(
  { url, urlSeal, headers, auth, tls }: ConnectionFields<A>,
  replace: Replace<A, B>,
): ConnectionFields<B> {
  const place = (...steps: string[]) => ({ steps, origins: [originOf(url)], isPublic: false });
  return {
    url,
    urlSeal,
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, replace(value, place('headers', name))]),
    ),
    auth: auth && mapAuth(auth, place, replace),
    tls: tls && mapTls(tls, place, replace),
  };
}

type PlaceOf = (...steps: string[]) => CredentialPlace;

function mapAuth<A, B>(auth: ConnectionAuth<A>, place: PlaceOf, replace: Replace<A, B>): ConnectionAuth<B> {
  switch (auth.type) {
    case 'bearer':
      return { ...auth, token: replace(auth.token, place('auth', 'token')) };
    case 'basic':
      return { ...auth, password: replace(auth.password, place('auth', 'password')) };
    case 'oauth2': {
      const at = place('auth', 'clientSecret');
      // It goes to the other URL, whose answer goes to this one.
      const origins = [...at.origins, originOf(auth.tokenUrl)];
      return { ...auth, clientSecret: replace(auth.clientSecret, { ...at, origins }) };
    }
    default:
      // A newer version, or another program, has written it: nothing may be sent without it.
      throw new Error('/auth/type is of a kind that this version does not know');
  }
}

function mapTls<A, B>({ ca, cert, key }: ConnectionTls<A>, place: PlaceOf, replace: Replace<A, B>): ConnectionTls<B> {
  const replaced = (name: keyof ConnectionTls, value: A | null) =>
    value === null ? null : replace(value, { ...place('tls', name), isPublic: name !== 'key' });
  return { ca: replaced('ca', ca), cert: replaced('cert', cert), key: replaced('key', key) };
}
