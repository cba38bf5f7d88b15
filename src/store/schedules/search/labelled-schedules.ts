import { type SQL, sql } from 'drizzle-orm';
import type { Executor } from '../../../postgres/executor.ts';
import { onlyColumnOf } from '../../../postgres/sql/rows.ts';

/** All of them are meant. */
export type Labels = readonly (readonly [key: string, value: string])[];

/** `uid`s of the schedules that have all of these labels as they are now; a deleted schedule has none. `named`: conditions on `s.id`. */
export function labelled(labels: Labels, named: readonly SQL[]): SQL {
  return sql`SELECT s.uid FROM schedule_versions v JOIN schedules s ON s.uid = v.schedule_uid AND s.version = v.version
    WHERE ${have(labels, named)}`;
}

/**
 * Whether the schedule of this uid has them. Evaluated for each row by itself, in the order of the rows: an EXISTS
 * might be evaluated for all schedules before the first row is read.
 */
export function isLabelled(uid: SQL, labels: Labels, named: readonly SQL[]): SQL {
  return sql`(SELECT ${have(labels, named)} FROM schedules s JOIN schedule_versions v ON v.schedule_uid = s.uid AND v.version = s.version
    WHERE s.uid = ${uid} LIMIT 1)`;
}

/** Uids of labelled schedules, at most `limit`; only of these, if some are given. */
export async function uidsLabelled(
  db: Executor,
  labels: Labels,
  { among, named, limit }: { among?: SQL | undefined; named: readonly SQL[]; limit: number },
): Promise<string[]> {
  return onlyColumnOf<string>(db)(sql`-- uidsLabelled
    ${labelled(labels, named)} ${among ? sql`AND s.uid = ANY (${among})` : sql``} LIMIT ${limit}`);
}

/** In the words of the index `schedule_versions_labels`. Two values of one label are two conditions, which nothing meets. */
function have(labels: Labels, named: readonly SQL[]): SQL {
  const each = labels.map(
    ([key, value]) => sql`(v.definition->'labels') @> ${JSON.stringify({ [key]: value })}::jsonb`,
  );
  return sql`(v.definition->'labels') <> '{}'::jsonb AND ${sql.join([...each, ...named], sql` AND `)}`;
}
