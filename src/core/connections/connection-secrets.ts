import { CannotOpen, type KeyRing } from '../secrets/key-ring.ts';
import {
  type MapValues,
  type SealedPlace,
  keyIdsOf,
  openAt,
  resealValues,
  sealValues,
} from '../secrets/sealed-values.ts';
import { type Connection, type ConnectionFields, type SecretFile, isSecretFile } from './connection.ts';
import { credentialFault } from './credential-rules.ts';
import { type CredentialPlace, mapCredentials } from './map-credentials.ts';

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
    ...(what === 'file' && { mayStayPlain: true }),
  };
}

function urlPlace(uid: string): SealedPlace {
  return { steps: ['url'], boundTo: JSON.stringify(['firelock connection url', uid]), mayStayPlain: true };
}

/** Of a file the name is encrypted, beside itself: the result proves who chose it. Certificates stay as they are. */
const valuesOf =
  (uid: string): MapValues<ConnectionFields> =>
  (fields, replace) => {
    const url = replace(fields.urlSeal ?? fields.url, urlPlace(uid));
    const urlSeal = typeof url === 'object' ? url : null;
    return mapCredentials({ ...fields, urlSeal }, (value, place) => {
      if (isSecretFile(value)) {
        const name = replace(value.seal ?? value.file, sealedPlace(uid, place, 'file'));
        return { file: value.file, seal: typeof name === 'object' ? name : null };
      }
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

/**
 * The connection in the form in which it is used. `readFile` answers the content of a file of FIRELOCK_SECRETS_DIR, and
 * throws if there is none; line breaks at the end of a content do not count.
 * @throws CannotOpen, which names the place, such as `/auth/token`
 */
export function openConnection(
  ring: KeyRing,
  stored: Connection,
  readFile: (name: string) => string,
): Connection<string> {
  checkUrl(ring, stored);
  const opened = mapCredentials(stored, (value, place): string => {
    if (isSecretFile(value)) {
      checkChosen(ring, value, sealedPlace(stored.uid, place, 'file'));
      return contentOf(value, place, readFile);
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

function checkChosen(ring: KeyRing, { file, seal }: SecretFile, place: SealedPlace): void {
  const named = `/${place.steps.join('/')} names the file ${JSON.stringify(file)}`;
  if (seal === null && ring.sealsWith !== null)
    throw new CannotOpen(
      `${named} without a proof that a holder of the key chose it: name another file, and then this one again`,
    );
  if (seal !== null && openAt(ring, seal, place, '') !== file)
    throw new CannotOpen(`${named}, which is not the one that was chosen: it was changed in the database`);
}

function contentOf(
  { file }: SecretFile,
  { steps }: CredentialPlace,
  readFile: (name: string) => string,
): string {
  const refused = (why: string) =>
    new CannotOpen(`/${steps.join('/')} cannot be taken from the file ${JSON.stringify(file)}: ${why}`);
  let text: string;
  try {
    text = readFile(file).replace(/[\r\n]+$/, '');
  } catch (error) {
    throw refused(error instanceof Error ? error.message : String(error));
  }
  const fault = credentialFault(steps, text);
  if (fault !== null) throw refused(`it ${fault}`);
  return text;
}
