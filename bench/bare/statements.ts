import postgres from 'postgres';
import type { Post } from './poster.ts';

/** One connection; each of its statements is for a whole batch, and a commit of its own. */
export interface Lane {
  /** Locks schedules that are due, for a moment before this one; records their runs; moves them on by so much. */
  fire(before: Date, by: Step): Promise<Post[]>;
  /** Takes runs that wait and are due. */
  take(): Promise<Post[]>;
  /** Writes the outcome of each run. */
  settle(runs: readonly Post[]): Promise<void>;
}

type Step = '1 second' | '10 years';

interface Store {
  lanes: readonly Lane[];
  /** They take the place of all that was there. */
  putSchedules(count: number, dueAt: number): Promise<void>;
  /** Likewise, runs of no schedule that wait for their moment. */
  putRuns(count: number, dueAt: number): Promise<void>;
}

/** Later than anything that is due. */
export const NEVER = new Date('9999-01-01T00:00:00Z');

const BATCH = 500;
/** While one waits for the target or for its commit, the others go on. */
const LANES = 4;

/** Makes the tables; for schedules and their runs, or for runs alone. */
export async function openStore(url: string, kind: 'schedules' | 'runs'): Promise<Store> {
  const admin = connect(url);
  await admin.unsafe(kind === 'schedules' ? TABLES_OF_SCHEDULES : TABLE_OF_RUNS);
  return {
    lanes: Array.from({ length: LANES }, () => openLane(url)),
    putSchedules: async (count, dueAt) => {
      await admin`TRUNCATE schedules, runs`;
      await admin`INSERT INTO schedules (id, next_fire_at)
        SELECT n, ${new Date(dueAt)} FROM generate_series(1, ${count}::int) AS n`;
    },
    putRuns: async (count, dueAt) => {
      await admin`TRUNCATE runs`;
      await admin`INSERT INTO runs (scheduled_for) SELECT ${new Date(dueAt)} FROM generate_series(1, ${count}::int)`;
    },
  };
}

function openLane(url: string): Lane {
  const sql = connect(url);
  const ask = async (statement: string, values: (string | Date)[]) => {
    const rows: unknown = await sql.unsafe(statement, values, { prepare: true }).values();
    return rows as Row[];
  };
  return {
    fire: async (before, by) => (await ask(LOCK_RECORD_ADVANCE, [before, by])).map(postOf),
    take: async () => (await ask(TAKE, [])).map(postOf),
    settle: async (runs) => {
      await ask(SETTLE, [`{${runs.map(({ runId }) => runId).join(',')}}`]);
    },
  };
}

/** Numbers as PostgreSQL writes them: the run, its schedule, its moment in milliseconds. */
type Row = [string, string | null, string];

function postOf([runId, scheduleId, scheduledFor]: Row): Post {
  return { runId, scheduleId, scheduledFor: new Date(Number(scheduledFor)).toISOString() };
}

function connect(url: string): postgres.Sql {
  return postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined });
}

/** What a fire needs, and the index that makes it one run per fire. */
const TABLES_OF_SCHEDULES = `
  CREATE TABLE schedules (id bigint PRIMARY KEY, next_fire_at timestamptz NOT NULL, locked_by int,
    locked_at timestamptz) WITH (fillfactor = 70);
  CREATE INDEX ON schedules (next_fire_at);
  CREATE TABLE runs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, schedule_id bigint NOT NULL,
    scheduled_for timestamptz NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), finished_at timestamptz,
    status_code smallint, UNIQUE (schedule_id, scheduled_for)) WITH (fillfactor = 80);`;

/** What a run needs that waits, and the index that finds those. */
const TABLE_OF_RUNS = `
  CREATE TABLE runs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, scheduled_for timestamptz NOT NULL,
    attempts smallint NOT NULL DEFAULT 0, claimed_by int, claimed_at timestamptz, finished_at timestamptz,
    status_code smallint) WITH (fillfactor = 70);
  CREATE INDEX ON runs (scheduled_for, id) WHERE claimed_by IS NULL;`;

const MILLISECONDS = '(extract(epoch FROM scheduled_for) * 1000)::bigint';

const LOCK_RECORD_ADVANCE = `
  WITH due AS (
    SELECT id, next_fire_at FROM schedules WHERE next_fire_at <= now() AND next_fire_at < $1
    ORDER BY next_fire_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  ), advanced AS (
    UPDATE schedules s SET next_fire_at = due.next_fire_at + $2::interval, locked_by = 1, locked_at = now()
    FROM due WHERE s.id = due.id
  )
  INSERT INTO runs (schedule_id, scheduled_for) SELECT id, next_fire_at FROM due ON CONFLICT DO NOTHING
  RETURNING id, schedule_id, ${MILLISECONDS}`;

const TAKE = `
  WITH due AS (
    SELECT id FROM runs WHERE claimed_by IS NULL AND scheduled_for <= now()
    ORDER BY scheduled_for, id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )
  UPDATE runs r SET claimed_by = 1, claimed_at = now(), attempts = attempts + 1
  FROM due WHERE r.id = due.id RETURNING r.id, NULL, ${MILLISECONDS}`;

const SETTLE = `
  UPDATE runs r SET finished_at = now(), status_code = 204
  FROM unnest($1::bigint[]) AS done (id) WHERE r.id = done.id`;
