import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { type AlertKind, ALERT_KINDS } from '../../src/core/alerts/alert.ts';
import { type NotifierFilter, laneOfMessages } from '../../src/core/alerts/notifier.ts';
import type { ChannelType } from '../../src/core/alerts/texts/channels.ts';
import { texts } from '../../src/postgres/sql/arrays.ts';
import { type Store, oneOffOf } from './pipeline.ts';
import type { RunStatus } from '../../src/core/runs/run.ts';
import type { RetryPolicy } from '../../src/core/schedules/schedule.ts';
import { runIdAt } from './pending-runs.ts';

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

interface LeftMessages {
  /** Where they go. */
  url: string;
  notifier?: string;
  count?: number;
  payload?: string;
  retry?: RetryPolicy;
  status?: Extract<RunStatus, 'waiting' | 'pending'>;
  secondsAgo?: number;
  /** Who claims them, for the first attempt; null: nobody. */
  claimedBy?: string | null;
}

/** Open messages of a notifier, which is there from now on, as its rows tell them. Answers their ids. */
export async function leaveMessages(store: Pick<Store, 'rows'>, given: LeftMessages): Promise<string[]> {
  const { notifier = 'oncall', count = 1, payload = '{"text":"it broke"}', status = 'pending' } = given;
  const { secondsAgo = 1, claimedBy = null, retry, url } = given;
  const { handoff } = oneOffOf({ url, ...(retry && { retry }) });
  const [row] = await store.rows<{ uid: string }>(sql`
    INSERT INTO notifiers (id, uid, enabled, kinds, filter, channel, version, updated_at)
    VALUES (${notifier}, gen_random_uuid(), true, '{failed}', '{"ids":[],"label":[]}', 'webhook', 1, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET enabled = true RETURNING uid`);
  const uid = row?.uid ?? '';
  await store.rows(sql`INSERT INTO schedule_versions (schedule_uid, version, schedule_id, change, at, definition)
    VALUES (${uid}::uuid, 1, '', 'created', clock_timestamp(), ${JSON.stringify(handoff)}::jsonb) ON CONFLICT DO NOTHING`);
  const runs = await store.rows<{
    id: string;
  }>(sql`INSERT INTO runs (id, scheduled_for, schedule_uid, schedule_version,
      schedule_id, trigger, notifier_id, status, lane, priority, due_at, ready, attempts, claimed_by, claimed_at, own_payload,
      created_at, updated_at)
    SELECT ${runIdAt(sql`due`)}, due, ${uid}::uuid, 1, '', 'notify', ${notifier}, ${status}, ${laneOfMessages(URL.parse(url)?.host ?? notifier)}, 1, due,
      ${status === 'pending'}, ${claimedBy === null ? 0 : 1}, ${claimedBy}::uuid,
      CASE WHEN ${claimedBy}::uuid IS NOT NULL THEN due END, ${payload}, due, due
    FROM (SELECT date_trunc('milliseconds', clock_timestamp()) - make_interval(secs => ${secondsAgo}) AS due
      FROM generate_series(1, ${count}::int)) AS d
    RETURNING id`);
  return runs.map(({ id }) => id);
}
