import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { ALERT_KINDS, type AlertKind } from '../../src/core/alerts/alert.ts';
import type { NotifierFilter } from '../../src/core/alerts/notifier.ts';
import type { ChannelType } from '../../src/core/alerts/texts/channels.ts';
import { texts } from '../../src/postgres/sql/arrays.ts';
import type { Store } from './pipeline.ts';

interface GivenNotifier {
  id: string;
  url: string;
  on?: readonly AlertKind[];
  filter?: NotifierFilter;
  channel?: ChannelType;
  fallback?: string;
  attempts?: number;
  afterFailures?: number;
}

/** A notifier, as its rows are: a webhook unless told otherwise; one attempt for each message, or so many. */
export async function putNotifier(
  store: Pick<Store, 'rows'>,
  { id, url, on = ALERT_KINDS, filter = { ids: [], label: [] }, ...given }: GivenNotifier,
): Promise<void> {
  const { channel = 'webhook', fallback = null, attempts: maxAttempts = 1, afterFailures = 1 } = given;
  const uid = randomUUID();
  const target = {
    ...{ type: 'http', url, method: 'POST', headers: {}, body: 'envelope', outcome: null },
    ...{ connection: null, secret: null, lookup: null, cancel: null },
  };
  const definition = {
    target,
    retry: { maxAttempts, minBackoffSeconds: 1, maxBackoffSeconds: 1 },
    ...{
      timeoutSeconds: 30,
      delivery: 'atLeastOnce',
      completion: 'response',
      completionTimeoutSeconds: 3600,
    },
  };
  await store.rows(sql`INSERT INTO notifiers (id, uid, enabled, kinds, filter, channel, fallback, remind_seconds, after_failures,
      version, updated_at)
    VALUES (${id}, ${uid}, true, ${texts(on)}, ${JSON.stringify(filter)}::jsonb, ${channel}, ${fallback}, 86400, ${afterFailures}, 1, clock_timestamp())`);
  await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    VALUES (${uid}, 1, '', 'created', clock_timestamp(), ${JSON.stringify(definition)}::jsonb)`);
}
