import { originOf } from '../schedules/target-parts.ts';
import type { ConnectionAuth, ConnectionFields, ConnectionTls } from './connection.ts';

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

function mapTls<A, B>(
  { ca, cert, key }: ConnectionTls<A>,
  place: PlaceOf,
  replace: Replace<A, B>,
): ConnectionTls<B> {
  const replaced = (name: keyof ConnectionTls, value: A | null) =>
    value === null ? null : replace(value, { ...place('tls', name), isPublic: name !== 'key' });
  return { ca: replaced('ca', ca), cert: replaced('cert', cert), key: replaced('key', key) };
}
