import type { z } from 'zod';
import { type Connection, isSecretFile } from '../../core/connections/connection.ts';
import { mapCredentials } from '../../core/connections/map-credentials.ts';
import { isoInstant } from '../../core/instant.ts';
import type { PutConnection } from '../../operations/connection-changes.ts';
import { isObject } from '../http/json/json-body.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import type { connection, connectionDiff } from './schemas.ts';

/** With its secret values masked. Answers never decrypt anything. */
export function answerConnection(stored: Connection): z.output<typeof connection> {
  const { id, description, version, updatedAt } = stored;
  const { url, headers, auth, tls } = mapCredentials(stored, (value, { isPublic }) => {
    if (isSecretFile(value)) return { file: value.file };
    return isPublic && typeof value === 'string' ? value : MASK;
  });
  return { id, description, url, headers, auth, tls, version, updatedAt: isoInstant(updatedAt) };
}

/** Of a secret value that changes, both sides are masked. */
export function answerDiff({
  before,
  connection: after,
  change,
  fields,
}: PutConnection): z.output<typeof connectionDiff> {
  const [was, is] = [before ?? after, after].map(answerConnection);
  const changed = fields.map((path) => ({ path, before: memberAt(was, path), after: memberAt(is, path) }));
  return { id: after.id, change, fields: changed };
}

/** Null: there is none. */
export function memberAt(root: unknown, path: string): unknown {
  const steps = path
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return steps.reduce<unknown>((at, step) => (isObject(at) ? (at[step] ?? null) : null), root);
}
