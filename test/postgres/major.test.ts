import { expect, inject, test } from 'vitest';
import postgres from 'postgres';

const OLDEST = 14;

test('the server of a run is of a version that is supported, and of the one that was asked for', async () => {
  const sql = postgres(inject('postgresUrl'), { max: 1 });
  try {
    const [row] = await sql`SELECT current_setting('server_version_num')::int / 10000 AS major`;
    expect(row?.['major']).toBeGreaterThanOrEqual(OLDEST);
    const asked = inject('postgresMajor');
    if (asked !== undefined) expect(row?.['major']).toBe(asked);
  } finally {
    await sql.end();
  }
});
