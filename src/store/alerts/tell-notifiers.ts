import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import { type Notifier, speaksOf } from '../../core/alerts/notifier.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { readNotifiers } from '../notifiers/notifier-rows.ts';
import { forgetOthers, noteEnds, noteOpenings } from './heard.ts';
import { tellingsOfChanges } from './message-order.ts';
import type { TextsAt } from './message-payloads.ts';
import { lockNotifiersToTell } from './notifiers-to-tell.ts';
import { type RecordedMessages, recordMessages } from './record-messages.ts';

/** A schedule with what becomes of its episodes. */
interface JudgedSchedule {
  schedule: { uid: string; id: string; labels: Readonly<Record<string, string>> };
  judged: { closed: readonly { id: string }[] };
  opened: readonly { id: string; kind: AlertKind; isAgain: boolean }[];
}

/** Who is to be told of these schedules. */
interface Tellers {
  /** By the uid of the schedule: ids of the notifiers that are to be told, once for each message. */
  told: ReadonlyMap<string, string[]>;
  /** Those whose rows are locked from now on; others have those of `busy`. */
  notifiers: readonly Notifier[];
  busy: ReadonlySet<string>;
}

export async function lockTellers(tx: Transaction, judged: readonly JudgedSchedule[]): Promise<Tellers> {
  const toldOf = await tellingsOf(tx, judged);
  const told = await tellersOf(tx, judged, toldOf);
  const { free, locked: busy } = await lockNotifiersToTell(tx, [...told.values()].flat());
  return { told, notifiers: [...free.values()], busy };
}

async function tellersOf(
  tx: Transaction,
  judged: readonly JudgedSchedule[],
  toldOf: ReadonlyMap<string, string[]>,
): Promise<Map<string, string[]>> {
  const isAny = judged.some((one) => one.opened.length > 0);
  const notifiers = isAny ? await readNotifiers(tx) : [];
  return new Map(
    judged.map(({ schedule, opened, judged: { closed } }) => [
      schedule.uid,
      [
        ...opened.flatMap(({ kind }) =>
          notifiers.filter((one) => speaksOf(one, kind, schedule)).map(({ id }) => id),
        ),
        ...closed.flatMap(({ id }) => toldOf.get(id) ?? []),
      ],
    ]),
  );
}

async function tellingsOf(
  tx: Transaction,
  judged: readonly JudgedSchedule[],
): Promise<Map<string, string[]>> {
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
  notifiers: readonly Notifier[],
  at: TextsAt,
): Promise<RecordedMessages> {
  const opened = notifiers.flatMap((notifier) =>
    decided.flatMap(({ schedule, opened: of }) =>
      of.flatMap(({ id: alertId, kind, isAgain }) =>
        speaksOf(notifier, kind, schedule) ? [{ notifier, alertId, isAgain }] : [],
      ),
    ),
  );
  const closed = decided.flatMap(({ judged }) => judged.closed.map(({ id }) => id));
  const again = decided.flatMap(({ opened: of }) => of.flatMap(({ id, isAgain }) => (isAgain ? [id] : [])));
  await forgetOthers(tx, again, opened);
  const toOpen = await noteOpenings(tx, opened, at.now);
  const toEnd = await noteEnds(tx, closed, at.now);
  const messages = await tellingsOfChanges(
    tx,
    notifiers.map((notifier) => ({
      ...{ notifier, opened: toOpen.get(notifier.id) ?? [], ended: toEnd.get(notifier.id) ?? [] },
    })),
    at.now,
  );
  return recordMessages(tx, messages, at);
}
