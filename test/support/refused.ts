import { sql } from 'drizzle-orm';
import type { Store } from './pipeline.ts';

/** From now on no run of this schedule can be made ready to be claimed. Answers how to mend that. */
export async function refuseRunsOf(store: Store, scheduleId: string): Promise<() => Promise<void>> {
  await letLanesBeLong(store);
  const [before] = await store.rows<{ lane: string }>(sql`SELECT lane FROM schedules WHERE id = ${scheduleId}`);
  await store.rows(sql`UPDATE schedules SET lane = ${REFUSED_LANE} WHERE id = ${scheduleId}`);
  return async () => {
    await store.rows(sql`UPDATE schedules SET lane = ${before?.lane ?? ''} WHERE id = ${scheduleId}`);
  };
}

/** From now on this run, which waits, cannot be made ready to be claimed. Answers how to mend that. */
export async function refuseToStart(store: Store, runId: string): Promise<() => Promise<void>> {
  await letLanesBeLong(store);
  const [before] = await store.rows<{ lane: string }>(sql`SELECT lane FROM runs WHERE id = ${runId}`);
  await store.rows(sql`UPDATE runs SET lane = ${REFUSED_LANE} WHERE id = ${runId}`);
  return async () => {
    await store.rows(sql`UPDATE runs SET lane = ${before?.lane ?? ''} WHERE id = ${runId}`);
  };
}

/** It is one of many reasons why a row may be refused; the others cannot be told beforehand. */
async function letLanesBeLong(store: Store): Promise<void> {
  await store.rows(sql`ALTER TABLE schedules DROP CONSTRAINT IF EXISTS schedules_lane`);
  await store.rows(sql`ALTER TABLE runs DROP CONSTRAINT IF EXISTS runs_lane`);
  // Also a run that comes due a millisecond from now: it enters the index of its lane only then.
  await store.rows(sql`CREATE INDEX IF NOT EXISTS runs_refused ON runs (lane) WHERE status = 'pending' AND NOT ready`);
}

/**
 * A lane that is too long for a row of an index, and does not compress: the database refuses each run of it that is to be claimed
 * (SQLSTATE 54000). It is a queue's, so that no instance claims the run as it records it.
 */
const REFUSED_LANE = sql`(SELECT 'pull ' || string_agg(md5(n::text || random()), '') FROM generate_series(1, 400) n)`;

/** The start of a handoff finds no row to write it in, as if somebody else had claimed the run. Answers how to mend that. */
export async function startsFindNoRow(store: Pick<Store, 'rows'>): Promise<() => Promise<void>> {
  await store.rows(sql`CREATE FUNCTION find_nothing() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.handoff_started_at IS NOT NULL AND NEW.status = 'pending' THEN RETURN NULL; END IF;
      RETURN NEW;
    END $$`);
  await store.rows(sql`CREATE TRIGGER find_nothing BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION find_nothing()`);
  return async () => void (await store.rows(sql`DROP TRIGGER find_nothing ON runs`));
}
