import { sql } from 'drizzle-orm';
import { expect, it } from 'vitest';
import { storeOfTest } from '../of-test.ts';

it('a database that is far away takes so much longer for each statement', async () => {
  const delayMs = 20;
  const { database } = await storeOfTest({ delayMs });
  await database.run(async (db) => {
    const began = performance.now();
    for (let n = 0; n < 4; n += 1) await db.execute(sql`SELECT`);
    // A timer may fire up to a millisecond early.
    expect(performance.now() - began).toBeGreaterThan(4 * (delayMs - 1));
  });
});
