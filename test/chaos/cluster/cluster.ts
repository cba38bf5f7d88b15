import postgres from 'postgres';
import { type Cluster, startCluster } from '../../support/postgres/server.ts';
import type { Dump } from '../checker/history.ts';

/** A PostgreSQL of the campaign's own, to be crashed at will: what was acknowledged must be there afterwards. */
export interface FaultCluster extends Pick<Cluster, 'crash' | 'restart' | 'stop'> {
  /** A superuser's, straight to the campaign's database. */
  readonly url: string;
  /** By a connection of its own, that may write whatever the defaults say; undefined where it could not. */
  admin(statement: string): Promise<Record<string, unknown>[] | undefined>;
}

export async function startFaultCluster(): Promise<FaultCluster> {
  const cluster = await startCluster({ survivesCrashes: true, settings: ['shared_buffers=64MB'] });
  const url = await cluster.createDatabase();
  return { ...cluster, url, admin: (statement) => execute(url, statement).catch(() => undefined) };
}

export async function execute(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, {
    max: 1,
    connect_timeout: 5,
    onnotice: () => undefined,
    connection: { application_name: 'chaos', default_transaction_read_only: false },
  });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** The id of the row that cannot be planned; it is not the checker's business. */
export const POISON_ID = 'poison';

/** The schedule that follows every end of every other one; its runs wait for a worker that never comes. */
export const FOLLOWER_ID = 'follower';

/** Everything the checker asks of the database, straight from the tables and in one snapshot. */
export async function dumpDatabase(url: string): Promise<Dump> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await sql.begin('isolation level repeatable read', async (tx) => {
      // The first statement takes the snapshot. Reading all of it may take long, and the daemons go on meanwhile.
      const [clock] = await tx.unsafe('SELECT clock_timestamp() AS now');
      const all = async (table: string) => (await tx.unsafe(`SELECT * FROM ${table}`)).map(rowOf);
      const open = (await all('runs')).map((row) => ({
        ...row,
        table: 'runs',
        reason: null,
        finishedAt: null,
      }));
      const ended = (await all('history')).map((row) => ({ ...row, table: 'history' }));
      const runs = [...open, ...ended] as Record<string, unknown>[];
      const isMessage = (row: Record<string, unknown>) => row['trigger'] === 'notify';
      const statusOf = new Map(runs.filter(isMessage).map((row) => [row['id'], row['status']]));
      const alertsOf = (await all('message_alerts')).map((row) => [row['runId'], row['alertId']] as const);
      const isFollower = (row: Record<string, unknown>) => row['scheduleId'] === FOLLOWER_ID;
      const versions = await all('schedule_versions');
      return {
        at: Number(clock?.['now']),
        runs: runs.filter((row) => !isFollower(row) && !isMessage(row)),
        followers: runs.filter(isFollower),
        effects: await all('effects'),
        alerts: await all('alerts'),
        messages: (await all('messages')).map((row) => ({
          ...row,
          status: statusOf.get(row['runId']) ?? null,
          alertIds: alertsOf.filter(([runId]) => runId === row['runId']).map(([, alertId]) => alertId),
        })),
        attempts: runs.filter((row) => !isMessage(row)).flatMap(attemptsOf),
        versions: versions
          .filter((row) => !isFollower(row) && row['scheduleId'] !== '')
          .map((row) => ({ ...row, marker: markerOf(row['payload']) })),
        schedules: (await all('schedules')).filter((row) => row['id'] !== POISON_ID && row['id'] !== FOLLOWER_ID),
        instances: await all('instances'),
      } as unknown as Dump;
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** `scheduled_for` becomes `scheduledFor`, a moment its milliseconds. */
function rowOf(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      value instanceof Date ? value.getTime() : value,
    ]),
  );
}

function attemptsOf(run: Record<string, unknown>): Record<string, unknown>[] {
  const log = (run['attemptLog'] ?? []) as Record<string, unknown>[];
  return log.map((entry) => ({ ...entry, runId: run['id'] }));
}

function markerOf(payload: unknown): string {
  return typeof payload === 'string' ? ((JSON.parse(payload) as { marker?: string }).marker ?? '') : '';
}
