import { sql } from 'drizzle-orm';
import { tellsApart } from '../../core/alerts/texts/channels.ts';
import type { MessageEvent } from '../../core/alerts/alert.ts';
import { type Notifier, handedTo } from '../../core/alerts/notifier.ts';
import { isEnd } from '../../core/runs/run.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { endRun } from '../../core/runs/transitions.ts';
import { booleans, texts, uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { MAX_EDGES_AT_ONCE, lockDependencies, recordDependencies } from '../runs/dependencies.ts';
import { lockOpenRuns, saveLockedRuns } from '../runs/lock-and-save.ts';
import { type Telling, type TextsAt, payloadsOf } from './message-payloads.ts';

/** What a notifier, whose row is locked, is to be told of: episodes that have opened, and that are over. */
interface Changes {
  notifier: Notifier;
  opened: readonly string[];
  ended: readonly string[];
}

/**
 * What these notifiers are told of these changes. What no try of a message may have told yet, and is so no more, is taken out of it: the
 * message goes on without it, so that what waits for it still does, or is cancelled if nothing is left. Then the change is all that is
 * told; of an incident that was not opened, nothing.
 */
export async function tellingsOfChanges(tx: Transaction, changes: readonly Changes[], at: TextsAt): Promise<Telling[]> {
  const messages = await messagesOf(tx, changes);
  const open = new Map((await lockOpenRuns(tx, idsOf(messages), 'skipLocked')).map((run) => [run.id, run]));
  const untold = messages.filter(({ run_id }) => isUntold(open.get(run_id)));
  await takeOut(tx, untold);
  const notifiers = new Map(changes.map(({ notifier }) => [notifier.id, notifier]));
  const written = untold.filter(({ gathers }) => !gathers);
  await writeAnew(tx, new Map(written.map((one) => [one.run_id, one])), { open, notifiers, at });
  const told = new Set(messages.filter((one) => !untold.includes(one)).map(keyOf));
  const isTold = (notifier: Notifier, alert_id: string) =>
    !tellsApart(notifier) || told.has(keyOf({ alert_id, notifier_id: notifier.id }));
  return [
    ...changes.map(({ notifier, opened: alertIds }): Telling => ({ notifier, event: 'opened', alertIds })),
    ...changes.map(({ notifier, ended }): Telling => ({
      ...{ notifier, event: 'recovered', alertIds: ended.filter((id) => isTold(notifier, id)) },
    })),
  ].filter(({ alertIds }) => alertIds.length > 0);
}

interface MessageRow {
  run_id: string;
  notifier_id: string;
  alert_id: string;
  event: MessageEvent;
  fallback_for: string | null;
  gathers: boolean;
}

function keyOf({ alert_id, notifier_id }: Pick<MessageRow, 'alert_id' | 'notifier_id'>): string {
  return `${alert_id} ${notifier_id}`;
}

function idsOf(messages: readonly Pick<MessageRow, 'run_id'>[]): string[] {
  return messages.map(({ run_id }) => run_id);
}

/** What told that these were not so: each message that is open, and one of those that have ended. */
async function messagesOf(tx: Transaction, changes: readonly Changes[]): Promise<MessageRow[]> {
  const pairs = changes.flatMap(({ notifier, opened, ended }) => [
    ...opened.map((alertId) => ({ notifier, alertId, isOver: false })),
    ...ended.map((alertId) => ({ notifier, alertId, isOver: true })),
  ]);
  if (pairs.length === 0) return [];
  return rowsOf<MessageRow>(tx)(sql`-- messagesOf
    SELECT DISTINCT ON (a.alert_id, m.notifier_id, r.id)
      m.run_id, m.notifier_id, a.alert_id, m.event, m.fallback_for, m.gathers_until IS NOT NULL AS gathers
    FROM unnest(${uuids(pairs.map(({ alertId }) => alertId))}, ${texts(pairs.map(({ notifier }) => notifier.id))},
      ${booleans(pairs.map(({ isOver }) => isOver))}) AS p(alert_id, notifier_id, is_over)
    JOIN message_alerts a ON a.alert_id = p.alert_id
    JOIN messages m ON m.run_id = a.run_id AND m.notifier_id = p.notifier_id LEFT JOIN runs r ON r.id = m.run_id
    WHERE CASE WHEN p.is_over THEN m.event IN ('opened', 'reminder') ELSE m.event = 'recovered' END`);
}

/** Undefined: it has ended, or another transaction has it. */
function isUntold(run: RunRecord | undefined): boolean {
  return run?.claimedBy === null && !(run.attemptLog ?? []).some(({ outcome }) => outcome === 'unknown');
}

async function takeOut(tx: Transaction, untold: readonly MessageRow[]): Promise<void> {
  if (untold.length === 0) return;
  await tx.execute(sql`-- takeOut
    DELETE FROM message_alerts a USING unnest(${uuids(idsOf(untold))}, ${uuids(untold.map(({ alert_id }) => alert_id))})
      AS t(run_id, alert_id)
    WHERE a.run_id = t.run_id AND a.alert_id = t.alert_id`);
}

/** Gives these messages the text of what is left of them; those of which nothing is left are cancelled. */
async function writeAnew(
  tx: Transaction,
  messages: ReadonlyMap<string, MessageRow>,
  { open, notifiers, at }: WrittenBy,
): Promise<void> {
  const all = [...messages.values()].flatMap(({ run_id: runId, notifier_id, event, fallback_for: fallbackFor }) => {
    const [run, notifier] = [open.get(runId), notifiers.get(notifier_id)];
    return run && notifier ? [{ runId, run, notifier, event, fallbackFor }] : [];
  });
  const payloads = await payloadsOf(tx, all, at);
  await saveLockedRuns(
    tx,
    all.map(({ runId, run: from, notifier }) => {
      // Another notifier may have its id by now.
      const ownPayload = from.scheduleUid === notifier.uid ? payloads.get(runId) : undefined;
      if (ownPayload === undefined)
        return { from, to: endRun(from, { status: 'cancelled', reason: 'replaced' }, at.now) };
      return { from, to: { ...from, ...handedTo(notifier), ownPayload, updatedAt: at.now } };
    }),
  );
}

interface WrittenBy {
  open: ReadonlyMap<string, RunRecord>;
  notifiers: ReadonlyMap<string, Notifier>;
  at: TextsAt;
}

/**
 * Of these episodes those whose end waits to be told by a message that another transaction has: if one of them opens again now, that end
 * can be neither taken out nor waited for.
 */
export async function endsHeldByOthers(tx: Transaction, alertIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (alertIds.length === 0) return new Set();
  const rows = await rowsOf<{ alert_id: string; run_id: string }>(tx)(sql`-- endsHeldByOthers
    SELECT a.alert_id, a.run_id FROM message_alerts a JOIN messages m ON m.run_id = a.run_id AND m.event = 'recovered'
    JOIN runs r ON r.id = a.run_id AND r.status = 'waiting' WHERE a.alert_id = ANY (${uuids(alertIds)})`);
  const mine = await lockOpenRuns(tx, [...new Set(idsOf(rows))], 'skipLocked');
  const locked = new Set(mine.map(({ id }) => id));
  return new Set(rows.filter(({ run_id }) => !locked.has(run_id)).map(({ alert_id }) => alert_id));
}

/**
 * A message never overtakes an earlier one of its episode at the same notifier: these messages wait for the ends of those. Answers for how
 * many each waits, and which these are. One that tells that something opened again waits for no message that waits itself: it follows
 * that none waits for another that waits for it.
 */
export async function waitForEarlier(
  tx: Transaction,
  ids: readonly string[],
): Promise<{ waits: ReadonlyMap<string, number>; earlier: ReadonlySet<string> }> {
  if (ids.length === 0) return { waits: new Map(), earlier: new Set() };
  const rows = await rowsOf<{ run_id: string; earlier: string }>(tx)(sql`-- waitForEarlier
    SELECT DISTINCT m.run_id, e.run_id AS earlier FROM unnest(${uuids(ids)}) AS i(run_id)
    JOIN messages m ON m.run_id = i.run_id JOIN message_alerts a ON a.run_id = m.run_id
    JOIN message_alerts b ON b.alert_id = a.alert_id AND b.run_id <> a.run_id
    JOIN messages e ON e.run_id = b.run_id AND e.notifier_id = m.notifier_id JOIN runs r ON r.id = e.run_id
    WHERE CASE m.event WHEN 'opened' THEN e.event = 'recovered' AND r.status <> 'waiting'
      ELSE e.event <> 'recovered' AND (m.event = 'recovered' OR e.created_at < m.created_at) END ORDER BY m.run_id, e.run_id`);
  const locked = await lockDependencies(tx, [...new Set(rows.map((row) => row.earlier))]);
  const edges = rows.filter((row) => isOpen(locked.get(row.earlier)));
  for (let first = 0; first < edges.length; first += MAX_EDGES_AT_ONCE)
    await recordDependencies(
      tx,
      edges
        .slice(first, first + MAX_EDGES_AT_ONCE)
        .map(({ run_id: runId, earlier: dependsOn }, position) => ({ runId, dependsOn, position })),
    );
  const waits = Map.groupBy(edges, ({ run_id }) => run_id);
  return {
    waits: new Map([...waits].map(([id, of]) => [id, of.length])),
    earlier: new Set(edges.map(({ earlier }) => earlier)),
  };
}

function isOpen(run: RunRecord | undefined): boolean {
  return run !== undefined && !isEnd(run.status);
}
