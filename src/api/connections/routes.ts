import { CONNECTION_KIND } from '../../operations/connection-changes.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { connectionIdText } from '../http/common-schemas.ts';
import { addNamedRoutes } from '../named/named-routes.ts';
import { resolveConnection } from './inputs.ts';
import { connection, connectionInput } from './schemas.ts';
import type { z } from 'zod';
import type { Connection } from '../../core/connections/connection.ts';
import { mapCredentials } from '../../core/connections/map-credentials.ts';
import { isoInstant } from '../../core/instant.ts';
import { answerCredential } from '../targets/answers.ts';

export function addConnectionRoutes(api: Api, deps: ApiDeps): void {
  addNamedRoutes(api, deps, {
    ...{ kind: CONNECTION_KIND, list: 'connections', id: connectionIdText, input: connectionInput },
    ...{ answered: connection, answer: answerConnection, resolve: resolveConnection },
    summaries: {
      get: 'One connection, with its secret values masked; its ETag is its version',
      put: 'Create a connection, or replace it whole: in force from the next attempt on, of open runs too',
      delete: 'Delete a connection that no schedule and no open run names',
    },
    refusals: [409, 422],
  });
}

/** With its secret values masked. Answers never decrypt anything. */
function answerConnection(stored: Connection): z.output<typeof connection> {
  const { id, description, version, updatedAt } = stored;
  const { url, headers, auth, tls } = mapCredentials(stored, (value, { isPublic }) => {
    return isPublic && typeof value === 'string' ? value : answerCredential(value);
  });
  return { id, description, url, headers, auth, tls, version, updatedAt: isoInstant(updatedAt) };
}
