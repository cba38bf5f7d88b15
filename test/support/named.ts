import type { Connection, ConnectionFields } from '../../src/core/connections/connection.ts';
import { sealConnection } from '../../src/core/connections/connection-secrets.ts';
import { CALENDAR_KIND } from '../../src/operations/calendars/calendar-changes.ts';
import type { MoveNextFiresDeps } from '../../src/operations/calendars/move-next-fires.ts';
import { CONNECTION_KIND, LIMIT_KIND } from '../../src/operations/named-kinds.ts';
import { putNamed } from '../../src/operations/named-changes.ts';
import type { Wake } from '../../src/runtime/loop/wake.ts';
import type { Calendar } from '../../src/store/calendars/calendar-rows.ts';
import { SECRETS } from './secrets.ts';

type Deps = Pick<MoveNextFiresDeps, 'database' | 'events'>;

/** A calendar without a description. */
export async function putDates(deps: MoveNextFiresDeps, dates: readonly string[], id = 'holidays'): Promise<Calendar> {
  const content = { description: null, validUntil: null, dates };
  return (await putNamed({ ...deps, scope: null }, CALENDAR_KIND, id, () => ({ content }))).thing;
}

/** A limit without a description. */
export function putLimitOf(deps: Deps & { wake: Wake }, maxRunning: number, id = 'l') {
  return putNamed({ ...deps, scope: null }, LIMIT_KIND, id, () => ({
    content: { description: null, maxRunning },
  }));
}

/** A connection whose values the usual key encrypts. */
export async function putConnection(
  { database, events }: Deps,
  id: string,
  given: Partial<ConnectionFields> & { url: string },
): Promise<Connection> {
  const fields = { urlSeal: null, headers: {}, auth: null, tls: null, ...given };
  const deps = { database, events, secrets: SECRETS, scope: null };
  const put = await putNamed(deps, CONNECTION_KIND, id, (before, uid) => ({
    content: { description: null, ...sealConnection(fields, { ring: SECRETS, uid, before }).fields },
  }));
  return put.thing;
}
