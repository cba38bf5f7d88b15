import { sql } from 'drizzle-orm';
import { afterEach, expect, it } from 'vitest';
import { listen } from '../../../src/postgres/connection/lasting-connection.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { createDatabase } from '../../support/postgres/cluster.ts';
import { notThroughPooler } from '../../support/postgres/pooler.ts';
import { until } from '../../support/until.ts';

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

it('a listener hears the notifications of each channel, and listens again after its connection was cut', async (context) => {
  notThroughPooler(context, 'LISTEN hears nothing there');
  const { url, drop } = await createDatabase();
  const database = openDatabase(url, 1);
  let heard = 0;
  let heardOnAnother = 0;
  const listener = listen(url, {
    a_channel: () => (heard += 1),
    another_channel: () => (heardOnAnother += 1),
  });
  cleanUp.push(
    drop,
    () => database.close(),
    () => listener.stop(),
  );
  const notified = (): Promise<unknown> =>
    database.run((db) => db.execute(sql`SELECT pg_notify('a_channel', '')`));
  const heardMoreThan = (count: number) => until(() => (heard > count ? heard : null));

  const connected = await heardMoreThan(0);
  await notified();
  const first = await heardMoreThan(connected);
  await database.run((db) =>
    db.execute(sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`),
  );
  const again = await heardMoreThan(first);
  await notified();
  expect(await heardMoreThan(again)).toBe(again + 1);

  const before = heardOnAnother;
  await database.run((db) => db.execute(sql`SELECT pg_notify('another_channel', '')`));
  await until(() => heardOnAnother > before || null);
  expect(heardOnAnother).toBe(before + 1);
  expect(heard).toBe(again + 1);
});
