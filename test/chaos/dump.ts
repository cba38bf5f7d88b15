import postgres from 'postgres';
import type { Dump } from './history.ts';

/** The id of the row that cannot be planned; it is not the checker's business. */
export const POISON_ID = 'poison';

/** Everything the checker asks of the database, straight from the tables and in one snapshot. */
export async function dumpDatabase(url: string): Promise<Dump> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await sql.begin('isolation level repeatable read', async (tx) => {
      const all = async (table: string) => (await tx.unsafe(`SELECT * FROM ${table}`)).map(rowOf);
      const [clock] = await tx.unsafe('SELECT clock_timestamp() AS now');
      const versions = await all('schedule_versions');
      return {
        at: Number(clock?.['now']),
        runs: await all('runs'),
        attempts: await all('attempts'),
        versions: versions.map((row) => ({ ...row, marker: markerOf(row['payload']) })),
        schedules: (await all('schedules')).filter((row) => row['id'] !== POISON_ID),
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

function markerOf(payload: unknown): string {
  return typeof payload === 'string' ? ((JSON.parse(payload) as { marker?: string }).marker ?? '') : '';
}
