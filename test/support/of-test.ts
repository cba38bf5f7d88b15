import postgres from 'postgres';
import { beforeEach, onTestFinished } from 'vitest';
import { type InstanceOptions, type Store, type TestInstance, createInstance, createStore } from './pipeline.ts';
import { type MigratedDatabase, createMigratedDatabase } from './postgres/migrated-database.ts';
import { type Answer, type Receiver, startReceiver } from './receiver.ts';

/** A store whose database is as far away as in the next data centre: what needs a round trip for each row shows there. */
export const FAR = { delayMs: 3 };

/** What is made by these, in a test or before each, ends with the test: the last one first. */
export async function storeOfTest(options?: { delayMs: number }): Promise<Store> {
  const store = await createStore(options);
  onTestFinished(() => store.drop());
  return store;
}

export async function instanceOfTest(store: Store, options?: InstanceOptions): Promise<TestInstance> {
  const instance = await createInstance(store, options);
  onTestFinished(() => instance.stop());
  return instance;
}

export async function receiverOfTest(answer?: Answer): Promise<Receiver> {
  const receiver = await startReceiver(answer);
  onTestFinished(() => receiver.close());
  return receiver;
}

/** With the schema. */
export async function databaseOfTest(): Promise<MigratedDatabase> {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  return database;
}

export function sqlOfTest(url: string, connections = 1): postgres.Sql {
  const sql = postgres(url, { max: connections, onnotice: () => undefined });
  onTestFinished(() => sql.end());
  return sql;
}

/** Made anew before each test, of a file or of a `describe`, in the order in which they stand there: used as if it were there all the time. */
export function eachTest<T extends object>(make: () => Promise<T> | T): T {
  let present: T | undefined;
  beforeEach(async () => {
    present = await make();
  });
  const made = (): T => {
    if (!present) throw new Error('it is there in a test only');
    return present;
  };
  return new Proxy((() => undefined) as unknown as T, {
    apply: (_, self, given) =>
      Reflect.apply<unknown, unknown[], unknown>(made() as (...given: unknown[]) => unknown, self, given),
    get: (_, name) => Reflect.get(made(), name) as unknown,
    set: (_, name, value) => Reflect.set(made(), name, value),
    has: (_, name) => Reflect.has(made(), name),
    ownKeys: () => Reflect.ownKeys(made()),
    getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(made(), name),
  });
}
