import { PassThrough } from 'node:stream';
import { onTestFinished } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { workTable } from '../../src/daemon/daemon.ts';
import { type Common, type Workers, createCommon, createWorkers, standardParts } from '../../src/daemon/parts.ts';
import { createLogger } from '../../src/observability/log/logger.ts';
import type { openDatabase } from '../../src/postgres/database.ts';
import type { Turning } from '../../src/runtime/loop/loop.ts';
import { loopsOf } from '../../src/runtime/service-table.ts';
import { registerUnlessObserving } from '../../src/store/instances/instances.ts';
import { instanceOfTest, receiverOfTest, storeOfTest } from '../support/of-test.ts';
import type { Store, TestInstance } from '../support/pipeline.ts';
import { notingAll } from '../support/postgres/noting.ts';
import type { Receiver } from '../support/receiver.ts';
import { SECRET_KEYS } from '../support/secrets.ts';

/** A store with so much of something, and what a daemon consists of, of which nothing has started. */
export interface Volume {
  store: Store;
  /** Writes schedules as the API does. */
  instance: TestInstance;
  receiver: Receiver;
  common: Common;
  workers: Workers;
  /** Those of the daemon's table of services. */
  loops: readonly Turning[];
  /** What they send: statements by the names of their functions, and of each transaction its begin and its end. */
  statements: string[];
}

/** All loops are there: two scopes share the installation, and one has caps. */
const SETTINGS = {
  ...{ PORT: '0', FIRELOCK_SHUTDOWN_SECONDS: '0', FIRELOCK_SCOPES: 'capped.:1000:1000' },
  ...{
    FIRELOCK_DISPATCH_CONCURRENCY: '256',
    FIRELOCK_DISPATCH_PER_HOST: '256',
    FIRELOCK_SECRET_KEYS: SECRET_KEYS,
  },
};

interface VolumeOptions {
  /** How much longer each round trip to the database takes. */
  delayMs?: number;
  /** Of the daemon, beside those above. */
  settings?: Readonly<Record<string, string>>;
}

export async function volumeOfTest({ delayMs = 0, settings = {} }: VolumeOptions = {}): Promise<Volume> {
  const store = await storeOfTest({ delayMs });
  const receiver = await receiverOfTest();
  const instance = await instanceOfTest(store);
  const read = readConfig({ ...SETTINGS, ...settings, DATABASE_URL: store.url });
  if ('faults' in read) throw new Error(read.faults.join());
  const statements: string[] = [];
  const common = createCommon(
    {
      ...{ config: read.config, databaseUrl: store.url, version: 'test' },
      logger: createLogger('silent', new PassThrough()),
      onStuck: fail,
    },
    { ...standardParts(), openDatabase: (...asked) => counting(store.openDatabase(...asked), statements) },
  );
  const { lease, pools, targets, events, zoneData } = common;
  // A pass that failed has not done what it is measured by.
  events.subscribe((event) => {
    if (event.type === 'loopFailed')
      statements.push(...new Array<string>(1_000).fill(`failed: ${String(event.error)}`));
  });
  lease.renew(lease.moment());
  await store.database.run((db) =>
    registerUnlessObserving(db, {
      id: lease.instanceId,
      host: 'test',
      version: 'test',
      zoneData,
      ttlSeconds: 3600,
    }),
  );
  const workers = createWorkers(common);
  onTestFinished(async () => {
    workers.dispatchers.abort();
    await Promise.all([
      workers.canceller.stop(),
      workers.pullQueues.stop(),
      workers.logFollowers.stop(),
      targets.close(),
    ]);
    await Promise.all([...new Set(Object.values(pools))].map((pool) => pool.close()));
  });
  const loops = loopsOf(workTable(common, workers));
  return { store, instance, receiver, common, workers, loops, statements };
}

function fail(reason: string): never {
  throw new Error(reason);
}

function counting(database: ReturnType<typeof openDatabase>, statements: string[]) {
  const noted = notingAll(database, statements);
  return {
    ...noted,
    transaction: ((work, limitMs) => {
      statements.push('BEGIN', 'COMMIT');
      return noted.transaction(work, limitMs);
    }) as typeof noted.transaction,
  };
}
