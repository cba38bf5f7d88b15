import type { z } from 'zod';
import { type Connection, isSecretFile } from '../../core/connections/connection.ts';
import { mapCredentials } from '../../core/connections/map-credentials.ts';
import { isoInstant } from '../../core/instant.ts';
import { MASK } from '../targets/http-call-schemas.ts';
import type { connection } from './schemas.ts';

/** With its secret values masked. Answers never decrypt anything. */
export function answerConnection(stored: Connection): z.output<typeof connection> {
  const { id, description, version, updatedAt } = stored;
  const { url, headers, auth, tls } = mapCredentials(stored, (value, { isPublic }) => {
    if (isSecretFile(value)) return { file: value.file };
    return isPublic && typeof value === 'string' ? value : MASK;
  });
  return { id, description, url, headers, auth, tls, version, updatedAt: isoInstant(updatedAt) };
}
