// @module-tag long
import { sql } from 'drizzle-orm';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { type Daemon, createDaemon } from '../../src/daemon/daemon.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { eachTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import { createInstance } from '../support/pipeline.ts';
import { until } from '../support/until.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** What may take long, or may wait: by the file that asks. */
const SLOW =
  /src\/(recovery\/(backstop|zone-watch)|history\/(create-partitions|drop-partitions|definition-walk)|observability\/gauge-sampler)\.ts/;

const store = eachTest(storeOfTest);
const receiver = eachTest(receiverOfTest);
let daemon: Daemon | undefined;
/** Works that hold a connection and do not end, and the sizes of the pools. */
let hanging: number;
let sizes: number[];

beforeEach(() => {
  [hanging, sizes, daemon] = [0, [], undefined];
});

afterEach(async () => {
  await daemon?.stop();
});

/** Its connection is held for good, and no time limit ends that. */
function hangingWhereSlow(database: Database): Database {
  const never = () => {
    hanging += 1;
    return new Promise<never>(() => undefined);
  };
  const isSlow = () => SLOW.test(new Error().stack ?? '');
  return {
    ...database,
    run: (work, limitMs) => (isSlow() ? database.run(never, DAY_MS) : database.run(work, limitMs)),
    transaction: (work, limitMs) => (isSlow() ? database.run(never, DAY_MS) : database.transaction(work, limitMs)),
  };
}

const DAY_MS = 86_400_000;

function start(pool: number): Promise<unknown> {
  const variables = { DATABASE_URL: store.url, PORT: '0', FIRELOCK_DATABASE_POOL: String(pool) };
  const read = readConfig({ ...variables, FIRELOCK_SHUTDOWN_SECONDS: '0' });
  if ('faults' in read) throw new Error(read.faults.join());
  const { config } = read;
  const logger = createLogger('silent', new PassThrough());
  const onStuck = (reason: string) => {
    throw new Error(reason);
  };
  daemon = createDaemon(
    { config, databaseUrl: store.url, version: 'test', logger, onStuck },
    {
      openDatabase: (url, size, options) => {
        sizes.push(size);
        return hangingWhereSlow(openDatabase(url, size, options));
      },
    },
  );
  return daemon.start();
}

it.each([
  [2, 1],
  [3, 1],
  [7, 1],
  [8, 2],
  [10, 2],
])(
  'of %i connections, slow looks that never end hold %i, and fires are planned, sent and settled',
  async (pool, most) => {
    const planner = await createInstance(store);
    await planner.put('often', { everySeconds: 1, cron: null, url: receiver.url });
    await start(pool);
    await until(() => hanging === most || null);
    await receiver.arrived(3);
    await until(async () => {
      const ended = await store.rows(sql`SELECT FROM all_runs WHERE status = 'succeeded'`);
      return ended.length >= 3 || null;
    });
    expect(hanging).toBe(most);
    // And one for the heartbeats.
    expect(sizes.reduce((sum, size) => sum + size)).toBe(pool + 1);
    await planner.stop();
  },
);
