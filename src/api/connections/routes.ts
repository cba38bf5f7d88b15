import { type ConnectionContent, CONNECTION_KIND } from '../../operations/named-kinds.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { connectionIdText } from '../http/common-schemas.ts';
import { addNamedRoutes, type Resolving } from '../named/named-routes.ts';
import { connection, type ConnectionInput, connectionInput } from './schemas.ts';
import type { z } from 'zod';
import type { Connection, ConnectionFields } from '../../core/connections/connection.ts';
import {
  type CredentialPlace,
  mapCredentials,
  openConnection,
  sealConnection,
} from '../../core/connections/connection-secrets.ts';
import { answerCredential } from '../targets/answers.ts';
import { isDeepStrictEqual } from 'node:util';
import { keyOfAnotherFault } from '../../core/connections/credential-rules.ts';
import type { KeyRing } from '../../core/secrets/key-ring.ts';
import { type Credential, isSecretFile } from '../../core/secrets/sealed-values.ts';
import { pointer } from '../../core/json-text.ts';
import { type Fault, invalid } from '../http/problem.ts';
import { answersOf } from '../http/routes.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import { NO_KEY } from '../targets/inputs.ts';
import { fileRules, resolveFile } from '../targets/secret-files.ts';

export function addConnectionRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    kind: CONNECTION_KIND,
    list: 'connections',
    id: connectionIdText,
    input: connectionInput,
    answered: connection,
    answer: answerConnection,
    resolve: resolveConnection,
    summaries: {
      get: 'One connection, with its secret values masked; its ETag is its version',
      put: 'Create a connection, or replace it whole: in force from the next attempt on, of open runs too',
      delete: 'Delete a connection that no schedule and no open run names',
    },
    refusals: [409, 422],
  });
}

const answered = answersOf(connection);

/** With its secret values masked. Answers never decrypt anything. */
function answerConnection(stored: Connection): z.output<typeof connection> {
  const masked = mapCredentials(stored, (value, { isPublic }) => {
    return isPublic && typeof value === 'string' ? value : answerCredential(value);
  });
  return answered({ ...stored, ...masked });
}

/**
 * A connection as it was sent, in the form in which it is stored. Values that were sent masked are filled in from the
 * stored connection; secret values are encrypted. `faults`: of what cannot be, though it is well-formed. @throws Problem 400
 */
function resolveConnection(
  input: ConnectionInput,
  { current, uid, scope, deps }: Resolving<Connection>,
): { content: ConnectionContent; faults: readonly Fault[] } {
  const { secrets } = deps;
  const rules = fileRules(deps, scope);
  const faults: Fault[] = [];
  const impossible: Fault[] = [];
  const stored = current === null ? [] : storedIn(current);
  const given = mapCredentials({ ...input, urlSeal: keptProof(input, current) }, (value, place): Credential => {
    const path = pointer(place.steps);
    const refuse = (message: string) => void faults.push({ path, message });
    const placed = stored.map((one) => ({
      ...one,
      goesElsewhere: !isDeepStrictEqual(one.origins, place.origins),
    }));
    const before = placed.find((one) => one.path === path.toLowerCase());
    if (typeof value === 'object')
      return resolveFile(value, { path, before, stored: placed, faults, impossible }, rules);
    if (value !== MASK || place.isPublic) return value;
    if (before === undefined || isSecretFile(before.value)) refuse(NOTHING_KEPT);
    else if (before.goesElsewhere) refuse(MOVED);
    return before?.value ?? value;
  });
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

/** A certificate beside a key that is kept. One that cannot be decrypted is not compared. */
function keptKeyFaults({ tls }: ConnectionInput, current: Connection | null, secrets: KeyRing): Fault[] {
  const kept = current?.tls?.key ?? null;
  if (!current || kept === null || tls?.key !== MASK || typeof tls.cert !== 'string') return [];
  const key = openedOrNull({ ...current, headers: {}, auth: null, tls: { ca: null, cert: null, key: kept } }, secrets);
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
