import { sql } from 'drizzle-orm';
import type { AlertKind } from '../../core/alerts/alert.ts';
import { covers, isTimeToTell, type Notifier } from '../../core/alerts/notifier.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { uuids } from '../../postgres/sql/arrays.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';
import { lockNotifiersToTell, readNotifiers } from '../notifiers/rows.ts';
import { forgetOthers, noteEnds, noteOpenings } from './heard.ts';
import { endsHeldByOthers, tellingsOfChanges } from './message-order.ts';
import type { TextsAt } from './message-payloads.ts';
import { type RecordedMessages, recordMessages } from './record-messages.ts';

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
