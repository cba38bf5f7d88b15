import { sql } from 'drizzle-orm';
import { LRUCache } from 'lru-cache';
import {
  type CalendarHistory,
  type Calendars,
  type CalendarVersion,
  daySetOfEntries,
} from '../../core/exclusions/exclusion.ts';
import { type Instant, EARLIEST, isoInstant, LATEST } from '../../core/instant.ts';
import type { Executor, Transaction } from '../../postgres/executor.ts';
import { ints, texts } from '../../postgres/sql/arrays.ts';
import { recordsOf, rowsOf } from '../../postgres/sql/rows.ts';

/** The content of some calendars, as far as it matters for occurrences at or after some moment. */
export interface KnownCalendars {
  /** The history of each calendar that was asked for; empty for an unknown one. */
  histories: Calendars;
  /** By `calendarEdition`, of each existing calendar: a transaction that writes results of the histories compares it under the lock. */
  editions: ReadonlyMap<string, string>;
  /** For edited calendars, with their version: the moment of the first edit that the next fires of their users may not follow yet. */
  unapplied: ReadonlyMap<string, { editedAt: Instant; version: number }>;
}

/** A version's number may be written again, after a failover that lost commits. */
function calendarEdition({ version, edition }: { version: number; edition: string | null }): string {
  return `${version} ${edition}`;
}

export const NO_KNOWN_CALENDARS: KnownCalendars = {
  histories: new Map(),
  editions: new Map(),
  unapplied: new Map(),
};

/** One statement, and another one for versions that this process has not read before. None if no calendar is asked for. */
export async function readCalendars(db: Executor, ids: readonly string[], since: Instant): Promise<KnownCalendars> {
  if (ids.length === 0) return NO_KNOWN_CALENDARS;
  const heads = await readHeads(db, [...new Set(ids)], since);
  const contentOf = await readContents(db, heads);
  const histories = new Map<string, CalendarHistory>();
  const editions = new Map<string, string>();
  const unapplied = new Map<string, { editedAt: Instant; version: number }>();
  for (const [id, own] of grouped(heads)) {
    histories.set(id, historyOf(id, own, contentOf));
    const head = own.find(({ version, current }) => version === current);
    if (!head) continue;
    editions.set(id, calendarEdition(head));
    const { version, applied } = head;
    const edit = own.find((one) => one.version > (applied ?? 0));
    if (edit && (applied ?? 0) < version) unapplied.set(id, { editedAt: edit.at, version });
  }
  return { histories, editions, unapplied };
}

/** The first edit of one of these calendars that next fires may not follow yet; null: they follow all edits. */
export function unappliedSince({ unapplied }: KnownCalendars, ids: readonly string[]): Instant | null {
  const edits = ids.flatMap((id) => unapplied.get(id)?.editedAt ?? []);
  return edits.length === 0 ? null : Math.min(...edits);
}

/** In the order of ids and versions; of an id without any version, a head with the version 0. */
async function readHeads(db: Executor, ids: readonly string[], since: Instant): Promise<Head[]> {
  // Another program may have written a cursor that is no moment.
  const from = isoInstant(Number.isNaN(since) ? EARLIEST : Math.min(Math.max(since, EARLIEST), LATEST));
  type Row = Omit<Head, 'version' | 'at'> & { version: number | null; at: Instant | null };
  const rows = await recordsOf<Row>(db)(sql`-- readHeads
    SELECT asked.id, c.version AS current, c.applied_version AS applied, v.version, v.edition, v.at
    FROM unnest(${texts(ids)}) AS asked(id)
    LEFT JOIN calendars c ON c.id = asked.id
    LEFT JOIN LATERAL (
      SELECT max(w.version) AS version FROM calendar_versions w
      WHERE w.calendar_id = asked.id AND w.at < ${from}::timestamptz
    ) AS first ON true
    LEFT JOIN calendar_versions v
      ON v.calendar_id = asked.id AND v.version >= least(coalesce(first.version, 0), c.applied_version)
    ORDER BY asked.id, v.version`);
  return rows.map(({ version, at, ...row }) => ({ ...row, version: version ?? 0, at: at ?? 0 }));
}

/** Of versions that never change. */
const histories = new LRUCache<string, CalendarHistory>({ max: 1_000 });

/** The same object for the same versions, so that results computed from it can be kept. */
function historyOf(id: string, heads: readonly Head[], known: Contents): CalendarHistory {
  const there = heads.filter((head) => known.has(keyOf(head)));
  const versions = there.flatMap((head) => known.get(keyOf(head)) ?? []);
  // The versions before the last one were there when it was written.
  const [first, last] = [there[0], there.at(-1)];
  const key = `${first?.version ?? 0} ${versions.length} ${last ? keyOf(last) : id}`;
  const kept = histories.get(key);
  if (kept) return kept;
  const history = { id, versions };
  histories.set(key, history);
  return history;
}

function grouped(heads: readonly Head[]): Map<string, Head[]> {
  const groups = new Map<string, Head[]>();
  for (const head of heads) {
    const group = groups.get(head.id);
    if (group) group.push(head);
    else groups.set(head.id, [head]);
  }
  return groups;
}

/** A version of a calendar, without its days. */
interface Head {
  id: string;
  /** Its newest version; null: there is no such calendar. */
  current: number | null;
  applied: number | null;
  version: number;
  edition: string | null;
  at: Instant;
}

/** By `keyOf`. */
type Contents = Map<string, CalendarVersion>;

/** `at` for those without an edition. */
const keyOf = ({ id, at, ...head }: Head): string => `${id} ${at} ${calendarEdition(head)}`;

/** Editions of versions never change. */
const contents = new LRUCache<string, CalendarVersion>({ max: 10_000 });

/** The days of each version, by its key. */
async function readContents(db: Executor, heads: readonly Head[]): Promise<Contents> {
  const known: Contents = new Map();
  for (const head of heads) {
    const content = contents.get(keyOf(head));
    if (content) known.set(keyOf(head), content);
  }
  const missing = heads.filter((head) => head.version > 0 && !known.has(keyOf(head)));
  if (missing.length === 0) return known;
  const rows = await rowsOf<{
    id: string;
    version: number;
    edition: string | null;
    dates: string[] | object | null;
  }>(db)(sql`-- readContents
    SELECT v.calendar_id AS id, v.version, v.edition, v.dates
    FROM unnest(${texts(missing.map(({ id }) => id))}, ${ints(missing.map(({ version }) => version))}) AS m(id, version)
    JOIN calendar_versions v ON v.calendar_id = m.id AND v.version = m.version`);
  const found = new Map(rows.map((row) => [`${row.id} ${calendarEdition(row)}`, row.dates ?? []]));
  for (const head of missing) {
    const { id, version, at } = head;
    const dates = found.get(`${id} ${calendarEdition(head)}`);
    // The version was old and has been dropped; or another program wrote it, which must not keep other schedules from
    // being planned.
    if (!Array.isArray(dates)) continue;
    const content = { version, at, days: daySetOfEntries(dates) };
    known.set(keyOf(head), content);
    contents.set(keyOf(head), content);
  }
  return known;
}

/**
 * Keeps calendars from being edited or deleted until the transaction ends. A separate statement before the one that reads or compares
 * what they say: in READ COMMITTED, a statement that has waited for a row lock still sees everything else as it was before it waited.
 */
export async function shareCalendars(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`-- shareCalendars
    SELECT FROM calendars WHERE id = ANY (${texts(ids)}) ORDER BY id FOR SHARE`);
}

/**
 * The same, and answers their editions (`calendarEdition`). A calendar that is being edited at this moment is passed over, and missing
 * in the answer: no fire waits for an edit.
 */
export async function shareFreeCalendars(tx: Transaction, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const rows = await rowsOf<{ id: string; version: number; edition: string | null }>(tx)(sql`-- shareFreeCalendars
    SELECT c.id, c.version, v.edition FROM calendars c JOIN calendar_versions v ON v.calendar_id = c.id AND v.version = c.version
    WHERE c.id = ANY (${texts(ids)}) ORDER BY c.id FOR SHARE OF c SKIP LOCKED`);
  return new Map(rows.map((row) => [row.id, calendarEdition(row)]));
}
