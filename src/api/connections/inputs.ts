import { isDeepStrictEqual } from 'node:util';
import { beyondScope, sees } from '../../core/access/scope.ts';
import {
  type Connection,
  type ConnectionFields,
  type Credential,
  isSecretFile,
} from '../../core/connections/connection.ts';
import { openConnection, sealConnection } from '../../core/connections/connection-secrets.ts';
import { type CredentialPlace, mapCredentials } from '../../core/connections/map-credentials.ts';
import { keyOfAnotherFault } from '../../core/connections/pem.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import type { ConnectionContent } from '../../operations/connection-changes.ts';
import { pointer } from '../../core/json-text.ts';
import { type Fault, invalid } from '../http/problem.ts';
import type { Resolving } from '../named/named-routes.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { NO_KEY } from '../targets/inputs.ts';
import type { ConnectionInput } from './schemas.ts';

/**
 * A connection as it was sent, in the form in which it is stored. Values that were sent masked are filled in from the
 * stored connection; secret values are encrypted. `faults`: of what cannot be, though it is well-formed. @throws Problem 400
 */
export function resolveConnection(
  input: ConnectionInput,
  { current, uid, scope, deps: { secrets, takesSecretFiles } }: Resolving<Connection>,
): { content: ConnectionContent; faults: readonly Fault[] } {
  const faults: Fault[] = [];
  const impossible: Fault[] = [];
  const stored = current === null ? [] : storedIn(current);
  const given = mapCredentials(
    { ...input, urlSeal: keptProof(input, current) },
    (value, place): Credential => {
      const path = pointer(place.steps);
      const refuse = (message: string) => void faults.push({ path, message });
      const goesElsewhere = ({ origins }: Stored) => !isDeepStrictEqual(origins, place.origins);
      const before = stored.find((one) => one.path === path.toLowerCase());
      if (typeof value === 'object') {
        const named = stored.filter((one) => isSecretFile(one.value) && one.value.file === value.file);
        if (named.length === 0 && !takesSecretFiles) impossible.push({ path, message: NO_DIRECTORY });
        const isKept = before !== undefined && named.includes(before) && !goesElsewhere(before);
        if (!isKept && !sees(scope, value.file))
          impossible.push({ path, message: `${beyondScope(scope)}: ${OF_FILES}` });
        if (named.length > 0 && named.every(goesElsewhere)) refuse(FILE_MOVED);
        else if (before && named.includes(before)) return keptFile(before.value, secrets, refuse);
        return { file: value.file, seal: null };
      }
      if (value !== MASK || place.isPublic) return value;
      if (before === undefined || isSecretFile(before.value)) refuse(NOTHING_KEPT);
      else if (goesElsewhere(before)) refuse(MOVED);
      return before?.value ?? value;
    },
  );
  faults.push(...keptKeyFaults(input, current, secrets));
  if (faults.length > 0) throw invalid(faults);
  const { fields, unsealed } = sealConnection(given, { ring: secrets, uid, before: current });
  impossible.push(...unsealed.map(({ steps }) => ({ path: pointer(steps), message: NO_KEY })));
  return { content: { description: input.description, ...fields }, faults: impossible };
}

/** A URL that was edited in the database gets no new proof by being sent back. */
function keptProof({ url }: ConnectionInput, current: Connection | null): Connection['urlSeal'] {
  return current?.url === url ? current.urlSeal : null;
}

interface Stored extends Pick<CredentialPlace, 'origins'> {
  /** In lower case: a header is the same in any letter case. */
  path: string;
  value: Credential;
}

function storedIn(current: ConnectionFields): Stored[] {
  const stored: Stored[] = [];
  mapCredentials(current, (value, { steps, origins }) => {
    stored.push({ path: pointer(steps).toLowerCase(), value, origins });
    return value;
  });
  return stored;
}

/**
 * With its proof, also if that does not fit: a row that was edited in the database gets no new proof by being sent back.
 */
function keptFile(kept: Credential, secrets: KeyRing, refuse: (message: string) => void): Credential {
  if (isSecretFile(kept) && kept.seal === null && secrets.sealsWith !== null) refuse(UNPROVEN);
  return kept;
}

/** A certificate beside a key that is kept. One that cannot be decrypted is not compared. */
function keptKeyFaults({ tls }: ConnectionInput, current: Connection | null, secrets: KeyRing): Fault[] {
  const kept = current?.tls?.key ?? null;
  if (!current || kept === null || tls?.key !== MASK || typeof tls.cert !== 'string') return [];
  const key = openedOrNull(
    { ...current, headers: {}, auth: null, tls: { ca: null, cert: null, key: kept } },
    secrets,
  );
  const message = key === null ? null : keyOfAnotherFault(tls.cert, key);
  return message === null ? [] : [{ path: '/tls/key', message }];
}

function openedOrNull(connection: Connection, secrets: KeyRing): string | null {
  try {
    const { tls } = openConnection(secrets, connection, () => '');
    return tls?.key ?? null;
  } catch {
    return null;
  }
}

const NOTHING_KEPT = `is "${MASK}", but there is no stored value to keep`;
const MOVED = 'must be given again, since the origin that it is sent to changes';
const FILE_MOVED =
  'names a file that the stored connection sends to another origin: whoever may edit it could have the content sent ' +
  'elsewhere, by its name alone; delete the connection first, or name another file';
const UNPROVEN =
  'names a file that is stored without a proof of who named it: there was no key, or the row was edited in the database; ' +
  'name another file first, and then this one again';
const OF_FILES = 'the name of a secret file begins with one of its prefixes, or with shared.';
const NO_DIRECTORY =
  'cannot name a file: there is no directory of secrets; set FIRELOCK_SECRETS_DIR (docs/connections.md)';
