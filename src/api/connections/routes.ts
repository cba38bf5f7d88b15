import { CONNECTION_KIND } from '../../operations/connection-changes.ts';
import type { Api, ApiDeps } from '../deps.ts';
import { connectionIdText } from '../http/common-schemas.ts';
import { addNamedRoutes } from '../named/named-routes.ts';
import { answerConnection } from './answers.ts';
import { resolveConnection } from './inputs.ts';
import { connection, connectionInput } from './schemas.ts';

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
