import { type SQL, sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import { type Notifier, covers, isTimeToTell } from '../../core/alerts/notifier.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { booleans, instants, texts, uuids } from '../../postgres/sql/arrays.ts';
import { type InstantText, rowsOf, toInstantOrNull } from '../../postgres/sql/rows.ts';
import { lockNotifiersToTell, readNotifiers } from '../notifiers/rows.ts';
import { endsHeldByOthers, tellingsOfChanges } from './message-order.ts';
import type { TextsAt } from './message-payloads.ts';
import { type RecordedMessages, recordMessages } from './record-messages.ts';
import { FLAP_SECONDS } from '../../core/alerts/episode.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';

interface Broken {
  id: string;
  kind: AlertKind;
  failures: number;
  before: number;
}

type Spoken = Broken & { isAgain: boolean; uid: string; notifier: Notifier; alertId: string };

/** What opened or broke again, which notifiers may be told now. */
function brokenOf({ opened, judged }: JudgedSchedule): (Broken & { isAgain: boolean })[] {
  return [
    ...opened.map((one) => ({ ...one, before: 0 })),
    ...judged.brokenAgain.flatMap((one) => (one.kind === 'failed' ? [{ ...one, isAgain: false }] : [])),
  ];
}

/** A schedule with what becomes of its episodes. */
interface JudgedSchedule {
  schedule: { uid: string; id: string; labels: Readonly<Record<string, string>> };
  judged: { closed: readonly { id: string }[]; brokenAgain: readonly Broken[] };
  opened: readonly (Omit<Broken, 'before'> & { isAgain: boolean })[];
}

/** Who is to be told of these schedules. */
interface Tellers {
  /** By the uid of the schedule: ids of the notifiers that are to be told, once for each message. */
  told: ReadonlyMap<string, string[]>;
  /** What enabled notifiers cover, also where it is not yet time to tell them. */
  speaking: readonly Spoken[];
  /** Those whose rows are locked from now on; others have those of `busy`. */
  notifiers: readonly Notifier[];
  busy: ReadonlySet<string>;
  /** Episodes of which it cannot be told yet that they open again (`endsHeldByOthers`). */
  held: ReadonlySet<string>;
}

export async function lockTellers(tx: Transaction, judged: readonly JudgedSchedule[]): Promise<Tellers> {
  const toldOf = await tellingsOf(tx, judged);
  const isAny = judged.some((one) => brokenOf(one).length > 0);
  const speaking = notifiersFor(isAny ? await readNotifiers(tx) : [], judged);
  const opened = Map.groupBy(speaking.filter(isToTell), ({ uid }) => uid);
  const told = new Map(
    judged.map(({ schedule: { uid }, judged: { closed } }) => [
      uid,
      [
        ...(opened.get(uid) ?? []).map(({ notifier }) => notifier.id),
        ...closed.flatMap(({ id }) => toldOf.get(id) ?? []),
      ],
    ]),
  );
  const { free, locked: busy } = await lockNotifiersToTell(tx, [...told.values()].flat());
  const held = await endsHeldByOthers(tx, judged.flatMap(againOf));
  return { told, speaking, notifiers: [...free.values()], busy, held };
}

/** What opened or broke again, for each of these notifiers whose kinds and filter cover it. */
function notifiersFor(notifiers: readonly Notifier[], judged: readonly JudgedSchedule[]): Spoken[] {
  const all = judged.flatMap((one) => brokenOf(one).map((broken) => ({ broken, schedule: one.schedule })));
  return notifiers.flatMap((notifier) =>
    all
      .filter(({ broken, schedule }) => covers(notifier, broken.kind, schedule))
      .map(({ broken, schedule: { uid } }) => ({ ...broken, uid, notifier, alertId: broken.id })),
  );
}

function isToTell({ notifier, ...broken }: Spoken): boolean {
  return isTimeToTell(notifier, broken);
}

function againOf({ opened }: JudgedSchedule): string[] {
  return opened.flatMap(({ id, isAgain }) => (isAgain ? [id] : []));
}

async function tellingsOf(tx: Transaction, judged: readonly JudgedSchedule[]): Promise<Map<string, string[]>> {
  const ids = judged.flatMap(({ judged: { closed } }) => closed.map(({ id }) => id));
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<{ alert_id: string; notifier_id: string }>(tx)(sql`-- tellingsOf
    SELECT alert_id, notifier_id FROM alert_tellings WHERE alert_id = ANY (${uuids(ids)})`);
  const found = Map.groupBy(rows, ({ alert_id }) => alert_id);
  return new Map([...found].map(([id, of]) => [id, of.map(({ notifier_id }) => notifier_id)]));
}

/** Tells notifiers whose rows are locked of what was opened, and of what is over, if they were told of it. */
export async function tell(
  tx: Transaction,
  decided: readonly JudgedSchedule[],
  { notifiers, speaking }: Pick<Tellers, 'notifiers' | 'speaking'>,
  at: TextsAt,
): Promise<RecordedMessages> {
  const opened = notifiersFor(notifiers, decided).filter(isToTell);
  const closed = decided.flatMap(({ judged }) => judged.closed.map(({ id }) => id));
  await forgetOthers(tx, decided.flatMap(againOf), speaking);
  const toOpen = await noteOpenings(tx, opened, at.now);
  const toEnd = await noteEnds(tx, closed, at.now);
  const messages = await tellingsOfChanges(
    tx,
    notifiers.map((notifier) => ({
      ...{ notifier, opened: toOpen.get(notifier.id) ?? [], ended: toEnd.get(notifier.id) ?? [] },
    })),
    at,
  );
  return recordMessages(tx, messages, at);
}

/** What notifiers, whose rows are locked, have heard of episodes. Of one that opened again they hear once in this time at most. */
export const HOLD_MS = FLAP_SECONDS * 1000;

interface Opening {
  notifier: Notifier;
  alertId: string;
  /** It opens again. */
  isAgain: boolean;
}

/** Notes that these have opened. Answers which of them are to be told now, by the notifier; of the others, the watch tells later. */
async function noteOpenings(tx: Transaction, opened: readonly Opening[], now: Instant): Promise<Map<string, string[]>> {
  if (opened.length === 0) return new Map();
  const held = now + HOLD_MS;
  const isHeld = heldAt(now);
  const rows = await rowsOf<{
    alert_id: string;
    notifier_id: string;
    held_until: InstantText | null;
    is_new: boolean;
  }>(tx)(sql`-- noteOpenings
    INSERT INTO alert_tellings AS t (alert_id, notifier_id, remind_at, held_until)
    SELECT o.alert_id, o.notifier_id, o.remind_at, CASE WHEN o.is_again OR EXISTS (SELECT FROM message_alerts g
        JOIN messages m ON m.run_id = g.run_id AND m.notifier_id = o.notifier_id AND m.event = 'recovered'
        WHERE g.alert_id = o.alert_id) THEN ${isoInstant(held)}::timestamptz END
    FROM unnest(${uuids(opened.map(({ alertId }) => alertId))}, ${texts(opened.map(({ notifier }) => notifier.id))},
      ${instants(opened.map(({ notifier }) => remindAt(notifier, now)))}, ${booleans(opened.map(({ isAgain }) => isAgain))})
      AS o(alert_id, notifier_id, remind_at, is_again)
    ON CONFLICT (alert_id, notifier_id) DO UPDATE SET told_over = t.told_over AND ${isHeld},
      remind_at = CASE WHEN t.told_over AND ${isHeld} THEN t.held_until WHEN t.told_over OR t.held_until IS NULL THEN excluded.remind_at
        ELSE t.remind_at END,
      held_until = CASE WHEN t.told_over AND NOT ${isHeld} THEN ${isoInstant(held)}::timestamptz ELSE t.held_until END
    RETURNING alert_id, notifier_id, held_until, xmax = 0 AS is_new`);
  return byNotifier(rows.filter(({ is_new, held_until }) => is_new || toInstantOrNull(held_until) === held));
}

function remindAt({ remindSeconds }: Notifier, now: Instant): Instant | null {
  return remindSeconds === null ? null : now + remindSeconds * 1000;
}

/** Of these, which open again, notifiers that speak of them no more are to hear no more. */
async function forgetOthers(tx: Transaction, again: readonly string[], opened: readonly Opening[]): Promise<void> {
  if (again.length === 0) return;
  await tx.execute(sql`-- forgetOthers
    DELETE FROM alert_tellings WHERE alert_id = ANY (${uuids(again)}) AND told_over AND (alert_id, notifier_id) NOT IN (
      SELECT * FROM unnest(${uuids(opened.map(({ alertId }) => alertId))}, ${texts(opened.map(({ notifier }) => notifier.id))}))`);
}

/** Notes that these are over. Answers which of them are to be told now, by the notifier; of the others, the watch tells later. */
async function noteEnds(tx: Transaction, closed: readonly string[], now: Instant): Promise<Map<string, string[]>> {
  if (closed.length === 0) return new Map();
  const [isHeld, held] = [heldAt(now), sql`${isoInstant(now + HOLD_MS)}::timestamptz`];
  const rows = await rowsOf<{ alert_id: string; notifier_id: string }>(tx)(sql`-- noteEnds
    WITH gone AS (
      DELETE FROM alert_tellings WHERE alert_id = ANY (${uuids(closed)}) AND held_until IS NULL RETURNING alert_id, notifier_id
    ), kept AS (
      UPDATE alert_tellings t SET told_over = NOT ${isHeld},
        held_until = CASE WHEN ${isHeld} THEN held_until ELSE ${held} END,
        remind_at = CASE WHEN ${isHeld} THEN held_until ELSE ${held} END
      WHERE alert_id = ANY (${uuids(closed)}) AND held_until IS NOT NULL AND NOT told_over
      RETURNING alert_id, notifier_id, told_over
    )
    SELECT alert_id, notifier_id FROM gone UNION ALL SELECT alert_id, notifier_id FROM kept WHERE told_over`);
  return byNotifier(rows);
}

/** Of a row `t` of alert_tellings: whether it hears nothing now. What still gathers is told as it is when it goes. */
function heldAt(now: Instant): SQL {
  return sql`(coalesce(t.held_until > ${isoInstant(now)}, false) AND NOT EXISTS (SELECT FROM message_alerts g
    JOIN messages m ON m.run_id = g.run_id AND m.notifier_id = t.notifier_id AND m.gathers_until IS NOT NULL
    WHERE g.alert_id = t.alert_id))`;
}

function byNotifier(rows: readonly { alert_id: string; notifier_id: string }[]): Map<string, string[]> {
  const found = Map.groupBy(rows, ({ notifier_id }) => notifier_id);
  return new Map([...found].map(([id, of]) => [id, of.map(({ alert_id }) => alert_id)]));
}
