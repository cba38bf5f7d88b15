import { type SQL, sql } from 'drizzle-orm';
import { FLAP_SECONDS } from '../../core/alerts/episode.ts';
import type { Notifier } from '../../core/alerts/notifier.ts';
import { type Instant, isoInstant } from '../../core/instant.ts';
import { booleans, instants, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { type InstantText, rowsOf, toInstantOrNull } from '../../postgres/sql/rows.ts';

/** What notifiers, whose rows are locked, have heard of episodes. Of one that opened again they hear once in this time at most. */
export const HOLD_MS = FLAP_SECONDS * 1000;

interface Opening {
  notifier: Notifier;
  alertId: string;
  /** It opens again. */
  isAgain: boolean;
}

/** Notes that these have opened. Answers which of them are to be told now, by the notifier; of the others, the watch tells later. */
export async function noteOpenings(
  tx: Transaction,
  opened: readonly Opening[],
  now: Instant,
): Promise<Map<string, string[]>> {
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
export async function forgetOthers(
  tx: Transaction,
  again: readonly string[],
  opened: readonly Opening[],
): Promise<void> {
  if (again.length === 0) return;
  await tx.execute(sql`-- forgetOthers
    DELETE FROM alert_tellings WHERE alert_id = ANY (${uuids(again)}) AND told_over AND (alert_id, notifier_id) NOT IN (
      SELECT * FROM unnest(${uuids(opened.map(({ alertId }) => alertId))}, ${texts(opened.map(({ notifier }) => notifier.id))}))`);
}

/** Notes that these are over. Answers which of them are to be told now, by the notifier; of the others, the watch tells later. */
export async function noteEnds(
  tx: Transaction,
  closed: readonly string[],
  now: Instant,
): Promise<Map<string, string[]>> {
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
