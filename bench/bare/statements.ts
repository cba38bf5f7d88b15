import { randomUUID } from 'node:crypto';
import postgres from 'postgres';

export const BATCH = 500;
/** Later than anything that is due. */
export const NEVER = new Date('9999-01-01T00:00:00Z');

export interface BareRun {
  runId: string;
  scheduleUid: string;
  scheduleId: string | null;
  scheduledFor: string;
}

/** One connection with the three statements of a fire, each a commit of its own and each for a whole batch. */
export interface Statements {
  createTables(): Promise<void>;
  /** Finds runs that wait, as every queue in PostgreSQL has it; without it each claim would read all the claimed ones. */
  createBacklogIndex(): Promise<void>;
  createSchedules(count: number, dueAt: number): Promise<void>;
  removeSchedules(): Promise<void>;
  /** Runs of no schedule that wait for their moment. */
  createRuns(count: number, dueAt: number): Promise<void>;
  /** Writes the fire-lock of schedules that are due, for a moment before this one; the run ids are new. */
  lock(before: Date): Promise<BareRun[]>;
  /** Moves the schedules on by so much, frees their locks and inserts their runs. */
  recordIntents(runs: readonly BareRun[], by: '1 year' | '1 second'): Promise<void>;
  /** Takes runs that wait and are due. */
  claim(): Promise<BareRun[]>;
  /** Writes the outcome of each run. */
  settle(runs: readonly BareRun[]): Promise<void>;
}

const INSTANCE = randomUUID();

export function openStatements(url: string): Statements {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => undefined });
  return {
    createTables: async () => {
      await sql.unsafe(TABLES);
    },
    createSchedules: async (count, dueAt) => {
      await sql`INSERT INTO schedules (uid, id, next_fire_at)
        SELECT gen_random_uuid(), 'herd-' || n, ${new Date(dueAt)} FROM generate_series(1, ${count}) AS n`;
    },
    createBacklogIndex: async () => {
      await sql`CREATE INDEX ON runs (scheduled_for, id) WHERE status = 'pending' AND claimed_by IS NULL`;
    },
    removeSchedules: async () => {
      await sql`TRUNCATE schedules`;
    },
    createRuns: async (count, dueAt) => {
      await sql`INSERT INTO runs (id, scheduled_for, schedule_uid, status, attempts, created_at)
        SELECT gen_random_uuid(), ${new Date(dueAt)}, gen_random_uuid(), 'pending', 0, clock_timestamp()
        FROM generate_series(1, ${count})`;
    },
    lock: async (before) => {
      const rows = await sql`WITH due AS (
        SELECT uid FROM schedules WHERE next_fire_at <= (SELECT clock_timestamp()) AND next_fire_at < ${before}
          AND locked_by IS NULL
        ORDER BY next_fire_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
        UPDATE schedules s SET locked_by = ${INSTANCE}, locked_at = clock_timestamp() FROM due WHERE s.uid = due.uid
        RETURNING s.uid, s.id, s.next_fire_at`;
      return rows.map((row) => ({
        runId: randomUUID(),
        scheduleUid: String(row['uid']),
        scheduleId: String(row['id']),
        scheduledFor: (row['next_fire_at'] as Date).toISOString(),
      }));
    },
    recordIntents: async (runs, by) => {
      await sql`WITH input AS (
        SELECT * FROM unnest(${arrayOf(runs.map((run) => run.runId))}::uuid[],
          ${arrayOf(runs.map((run) => run.scheduleUid))}::uuid[],
          ${arrayOf(runs.map((run) => run.scheduledFor))}::timestamptz[]) AS i(id, schedule_uid, scheduled_for)
      ), advanced AS (
        UPDATE schedules s SET next_fire_at = s.next_fire_at + ${by}::interval, last_fire_at = s.next_fire_at,
          locked_by = NULL, locked_at = NULL
        FROM input i WHERE s.uid = i.schedule_uid AND s.locked_by = ${INSTANCE}
        RETURNING s.uid)
        INSERT INTO runs (id, scheduled_for, schedule_uid, status, claimed_by, attempts, created_at)
        SELECT i.id, i.scheduled_for, i.schedule_uid, 'pending', ${INSTANCE}::uuid, 1, clock_timestamp()
        FROM input i JOIN advanced a ON a.uid = i.schedule_uid ON CONFLICT DO NOTHING`;
    },
    claim: async () => {
      const rows = await sql`WITH due AS (
        SELECT scheduled_for, id FROM runs
        WHERE status = 'pending' AND claimed_by IS NULL AND scheduled_for <= (SELECT clock_timestamp())
        ORDER BY scheduled_for, id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)
        UPDATE runs r SET claimed_by = ${INSTANCE}, attempts = attempts + 1 FROM due
        WHERE r.scheduled_for = due.scheduled_for AND r.id = due.id
        RETURNING r.id, r.schedule_uid, r.scheduled_for`;
      return rows.map((row) => ({
        runId: String(row['id']),
        scheduleUid: String(row['schedule_uid']),
        scheduleId: null,
        scheduledFor: (row['scheduled_for'] as Date).toISOString(),
      }));
    },
    settle: async (runs) => {
      await sql`UPDATE runs r SET status = 'succeeded', status_code = 204, finished_at = clock_timestamp()
        FROM unnest(${arrayOf(runs.map((run) => run.runId))}::uuid[],
          ${arrayOf(runs.map((run) => run.scheduledFor))}::timestamptz[]) AS i(id, scheduled_for)
        WHERE r.scheduled_for = i.scheduled_for AND r.id = i.id`;
    },
  };
}

/** What a fire needs, and the two indexes that make it one run per fire. */
const TABLES = `
  CREATE TABLE schedules (uid uuid PRIMARY KEY, id text NOT NULL, next_fire_at timestamptz(3),
    last_fire_at timestamptz(3), locked_by uuid, locked_at timestamptz(3)) WITH (fillfactor = 60);
  CREATE INDEX ON schedules (next_fire_at);
  CREATE TABLE runs (id uuid NOT NULL, scheduled_for timestamptz(3) NOT NULL, schedule_uid uuid NOT NULL,
    status text NOT NULL, claimed_by uuid, attempts integer NOT NULL, status_code smallint,
    created_at timestamptz(3) NOT NULL, finished_at timestamptz(3), PRIMARY KEY (scheduled_for, id));
  CREATE UNIQUE INDEX ON runs (schedule_uid, scheduled_for);`;

function arrayOf(values: readonly string[]): string {
  return `{${values.join(',')}}`;
}
