import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import type { Executor } from './executor.ts';

/** One connection to PostgreSQL: opened when first used, opened again when lost. */
export interface Connection {
  executor: Executor;
  /** Waits for what runs on it. */
  close(): Promise<void>;
  /** Drops it at once, with whatever runs on it. */
  destroy(): Promise<void>;
}

export function connect(url: string): Connection {
  const client = createClient(url);
  return {
    executor: drizzle(client),
    close: () => client.end({ timeout: 5 }),
    destroy: () => client.end({ timeout: 0 }),
  };
}

/**
 * Calls `heard` for each NOTIFY on the channel, and after every (re)connection, when some may have been missed.
 * A hint: behind a pooler in transaction mode nothing is heard.
 */
export function listen(url: string, channel: string, heard: () => void): { stop: () => Promise<void> } {
  const client = createClient(url);
  // The driver goes on trying by itself once it has listened; until then each failure comes here.
  let stopped = false;
  const subscribe = (): void => {
    client.listen(channel, heard, heard).catch(() => {
      if (!stopped) setTimeout(subscribe, LISTEN_RETRY_MS).unref();
    });
  };
  subscribe();
  return {
    stop: async () => {
      stopped = true;
      await client.end({ timeout: 0 });
    },
  };
}

const LISTEN_RETRY_MS = 2_000;

function createClient(url: string): postgres.Sql {
  return postgres(url, {
    max: 1,
    // Named prepared statements belong to a session: with a pooler between, to somebody else's.
    prepare: false,
    connect_timeout: 5,
    backoff: () => 0.2,
    onnotice: () => undefined,
    // What rows are read back with must not hang on the server's settings.
    connection: { application_name: 'firelock', TimeZone: 'UTC', DateStyle: 'ISO' },
  });
}
