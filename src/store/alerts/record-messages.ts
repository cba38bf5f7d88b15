import { type SQL, sql } from 'drizzle-orm';
import { tellsApart } from '../../core/alerts/texts/channels.ts';
import { GATHER_SECONDS } from '../../core/alerts/alert.ts';
import { messageRun } from '../../core/alerts/notifier.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { randomRunId } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { PRIORITY_RANK } from '../../core/schedules/schedule.ts';
import { booleans, instants, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { recordRuns } from '../runs/lock-and-save.ts';
import { waitForEarlier } from './message-order.ts';
import { type GatheredTelling, type Telling, type TextsAt, payloadsOf } from './message-payloads.ts';

export interface RecordedMessages {
  /** Those that still gather. */
  gathering: number;
  /** Those that may be sent. */
  toSend: number;
}

export const NO_MESSAGES: RecordedMessages = { gathering: 0, toSend: 0 };

/**
 * Adds these episodes to the messages that the notifiers still gather, or records new ones, each of which is a run: one that waits until it
 * is closed, or one that may be sent at once. PagerDuty has one incident for each episode, so each is a message of its own, and nothing is
 * gathered; nor is what another notifier could not deliver. The statements are as many for one as for a thousand.
 */
export async function recordMessages(
  tx: Transaction,
  tellings: readonly Telling[],
  at: TextsAt,
): Promise<RecordedMessages> {
  if (tellings.length === 0) return NO_MESSAGES;
  const gathering = await gatheringOf(tx, tellings.filter(gathers));
  const isGathered = (telling: Telling) => gathers(telling) && gathering.has(keyOf(telling));
  const drafts = tellings.filter((one) => !isGathered(one)).flatMap((one) => draftsOf(one, at.now));
  const closed = drafts.filter(({ gathersUntil }) => gathersUntil === null);
  const joining = tellings
    .filter(isGathered)
    .map((telling) => ({ runId: gathering.get(keyOf(telling)) ?? '', alertIds: telling.alertIds }));
  await insertMessages(tx, drafts, at.now);
  await addAlerts(tx, [...joining, ...drafts]);
  await copyAlerts(tx, drafts);
  const payloads = await payloadsOf(tx, closed, at);
  const { waits } = await waitForEarlier(
    tx,
    closed.map(({ runId }) => runId),
  );
  const runs = drafts.map((draft) => ({
    ...runOf(draft, payloads.get(draft.runId) ?? null, at.now),
    ...waitingFor(waits.get(draft.runId)),
  }));
  await recordRuns(tx, runs);
  return { gathering: drafts.length - closed.length, toSend: closed.length };
}

/** A message that is recorded here. */
interface Draft extends GatheredTelling {
  alertIds: readonly string[];
  copiedFrom: string | null;
  onlyOpen: boolean | null;
  /** Null: it is closed. */
  gathersUntil: Instant | null;
}

/** Of a message that waits for so many earlier ones. Once they have ended, however they did, it is sent. */
export function waitingFor(earlier: number | undefined): Partial<RunRecord> {
  return earlier ? { status: 'waiting', openDependencies: earlier, onDependencyFailure: 'run' } : {};
}

function gathers({ notifier, fallbackFor, copiedFrom }: Telling): boolean {
  return !tellsApart(notifier) && fallbackFor === undefined && copiedFrom === undefined;
}

function draftsOf(telling: Telling, now: Instant): Draft[] {
  const { notifier, event, alertIds: all, fallbackFor = null, copiedFrom = null, onlyOpen = null } = telling;
  const each = tellsApart(notifier) ? all.map((id) => [id]) : [all];
  const gathersUntil = gathers(telling) ? now + GATHER_SECONDS * 1000 : null;
  return each.map((alertIds) => ({
    ...{
      runId: randomRunId(now),
      notifier,
      event,
      alertIds,
      fallbackFor,
      copiedFrom,
      onlyOpen,
      gathersUntil,
    },
  }));
}

function runOf({ runId: id, notifier, gathersUntil }: Draft, ownPayload: string | null, now: Instant): RunRecord {
  const status = gathersUntil === null ? 'pending' : 'waiting';
  const given = { id, status, dueAt: gathersUntil ?? now, priority: PRIORITY_RANK.high, ownPayload } as const;
  return messageRun(notifier, given, now);
}

function keyOf({ notifier, event }: Pick<Telling, 'notifier' | 'event'>): string {
  return `${event} ${notifier.id}`;
}

/** The runs of messages that are not closed: they are closed under the same locks. */
async function gatheringOf(tx: Transaction, tellings: readonly Telling[]): Promise<Map<string, string>> {
  if (tellings.length === 0) return new Map();
  const rows = await rowsOf<{ place: string; run_id: string }>(tx)(sql`-- gatheringOf
    SELECT DISTINCT ON (t.place) t.place, m.run_id
    FROM unnest(${texts(tellings.map(({ notifier }) => notifier.id))}, ${texts(tellings.map(({ event }) => event))})
      WITH ORDINALITY AS t(notifier_id, event, place)
    JOIN messages m ON m.gathers_until IS NOT NULL AND m.fallback_for IS NULL
      AND m.notifier_id = t.notifier_id AND m.event = t.event
    JOIN runs r ON r.id = m.run_id AND r.status = 'waiting'
    ORDER BY t.place, m.gathers_until`);
  return new Map(
    rows.flatMap(({ place, run_id }) => {
      const telling = tellings[Number(place) - 1];
      return telling ? [[keyOf(telling), run_id] as const] : [];
    }),
  );
}

async function insertMessages(tx: Transaction, drafts: readonly Draft[], now: Instant): Promise<void> {
  if (drafts.length === 0) return;
  await tx.execute(sql`-- insertMessages
    INSERT INTO messages (run_id, notifier_id, event, gathers_until, fallback_for, created_at)
    SELECT d.*, ${isoInstant(now)}::timestamptz
    FROM unnest(${uuids(drafts.map(({ runId }) => runId))}, ${texts(drafts.map(({ notifier }) => notifier.id))},
      ${texts(drafts.map(({ event }) => event))}, ${instants(drafts.map(({ gathersUntil }) => gathersUntil))},
      ${texts(drafts.map(({ fallbackFor }) => fallbackFor))}) AS d`);
}

async function addAlerts(
  tx: Transaction,
  messages: readonly { runId: string; alertIds: readonly string[] }[],
): Promise<void> {
  const pairs = messages.flatMap(({ runId, alertIds }) => alertIds.map((alertId) => ({ runId, alertId })));
  if (pairs.length === 0) return;
  await tx.execute(sql`-- addAlerts
    INSERT INTO message_alerts (run_id, alert_id)
    SELECT * FROM unnest(${uuids(pairs.map(({ runId }) => runId))}, ${uuids(pairs.map(({ alertId }) => alertId))})
    ON CONFLICT DO NOTHING`);
}

/** Inside the database, however many these are. */
async function copyAlerts(tx: Transaction, drafts: readonly Draft[]): Promise<void> {
  const copies = drafts.filter(({ copiedFrom }) => copiedFrom !== null);
  if (copies.length === 0) return;
  await tx.execute(sql`-- copyAlerts
    INSERT INTO message_alerts (run_id, alert_id) SELECT c.run_id, a.alert_id
    FROM unnest(${uuids(copies.map(({ runId }) => runId))}, ${uuids(copies.map(({ copiedFrom }) => copiedFrom))},
      ${texts(copies.map(({ notifier }) => notifier.id))}, ${booleans(copies.map(({ onlyOpen }) => onlyOpen))})
      AS c(run_id, copied_from, notifier_id, only_open)
      JOIN message_alerts a ON a.run_id = c.copied_from JOIN alerts e ON e.id = a.alert_id
    WHERE CASE WHEN c.only_open THEN e.until IS NULL
      WHEN NOT c.only_open THEN e.until IS NOT NULL AND ${isUntoldEnd(sql`a.alert_id`, sql`c.notifier_id`)} ELSE true END`);
}

/** Whether no message has told the notifier that the episode is over. */
export function isUntoldEnd(alertId: SQL, notifierId: SQL): SQL {
  return sql`NOT EXISTS (SELECT FROM message_alerts t JOIN messages o ON o.run_id = t.run_id AND o.event = 'recovered'
      WHERE t.alert_id = ${alertId} AND o.notifier_id = ${notifierId})`;
}
