import { LRUCache } from 'lru-cache';
import { sql } from 'drizzle-orm';
import { type CalendarVersion, daySetOfEntries } from '../../core/exclusions/calendar-history.ts';
import type { Instant } from '../../core/instant.ts';
import { ints, texts } from '../../postgres/sql/arrays.ts';
import type { Executor } from '../../postgres/executor.ts';
import { rowsOf } from '../../postgres/sql/rows.ts';

/** A version of a calendar, without its days. */
export interface Head {
  id: string;
  /** Its newest version; null: there is no such calendar. */
  current: number | null;
  applied: number | null;
  version: number;
  at: Instant;
}

/** By `keyOf`. */
export type Contents = Map<string, CalendarVersion>;

export const keyOf = ({ id, version, at }: Head): string => `${id} ${version} ${at}`;

/** Versions never change. `at` distinguishes them from those of a restored database, or of another one. */
const contents = new LRUCache<string, CalendarVersion>({ max: 10_000 });

/** The days of each version, by its key. */
export async function readContents(db: Executor, heads: readonly Head[]): Promise<Contents> {
  const known: Contents = new Map();
  for (const head of heads) {
    const content = contents.get(keyOf(head));
    if (content) known.set(keyOf(head), content);
  }
  const missing = heads.filter((head) => head.version > 0 && !known.has(keyOf(head)));
  if (missing.length === 0) return known;
  const rows = await rowsOf<{ id: string; version: number; dates: string[] | object | null }>(
    db,
    sql`SELECT v.calendar_id AS id, v.version, v.dates
    FROM unnest(${texts(missing.map(({ id }) => id))}, ${ints(missing.map(({ version }) => version))}) AS m(id, version)
    JOIN calendar_versions v ON v.calendar_id = m.id AND v.version = m.version`,
  );
  const found = new Map(rows.map(({ id, version, dates }) => [`${id} ${version}`, dates ?? []]));
  for (const head of missing) {
    const { id, version, at } = head;
    const dates = found.get(`${id} ${version}`);
    // The version was old and has been dropped; or another program wrote it, which must not keep other schedules from
    // being planned.
    if (!Array.isArray(dates)) continue;
    const content = { version, at, days: daySetOfEntries(dates) };
    known.set(keyOf(head), content);
    contents.set(keyOf(head), content);
  }
  return known;
}
