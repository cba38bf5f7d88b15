import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { cancellable } from './cancel.ts';
import type { Executor } from './executor.ts';
import { type Sessions, foundForeignSession, isOwnSession, namingIn } from './sessions.ts';

/** One connection to PostgreSQL: opened when first used, opened again when lost. */
export interface Connection {
  executor: Executor;
  /** Before work: finds out whether its session is this client's own, where `sessions` does not know. */
  ready(): Promise<void>;
  /** Sees to it that `sessions` are no longer taken for own ones where the last statement, or this error of it, says otherwise. */
  look(): void;
  /** Waits for what runs on it. */
  close(): Promise<void>;
  /** Drops it with whatever runs on it, here and on the server. */
  destroy(): Promise<void>;
}

export function connect(url: string, sessions: Sessions): Connection {
  const naming = namingIn(sessions);
  const { client, cancel, latest } = cancellable(createClient(url), naming);
  return {
    executor: drizzle(client),
    ready: async () => {
      sessions.areOwn ??= await isOwnSession(client);
      // Sent together with what comes next, and where it fails, so does that.
      if (naming.isTimeToReplan()) client.unsafe('DISCARD PLANS').catch(() => undefined);
    },
    look: () => {
      if (foundForeignSession(latest())) sessions.areOwn = false;
    },
    close: () => client.end({ timeout: 5 }),
    destroy: async () => {
      await cancel();
      await client.end({ timeout: 0 });
    },
  };
}

/**
 * Calls what stands by the channel (an SQL identifier) for each NOTIFY on it, and all of them after every (re)connection, when some
 * may have been missed. A hint: behind a pooler in transaction mode nothing is heard.
 */
export function listen(url: string, channels: Record<string, () => void>): { stop: () => Promise<void> } {
  let retry: NodeJS.Timeout | undefined;
  let stopped = false;
  // Not the driver's own listen(): once it cannot reconnect at the first try, it never listens again.
  const client = createClient(url, {
    onnotify: (channel) => channels[channel]?.(),
    onclose: again,
    max_lifetime: null,
  });
  const statement = Object.keys(channels)
    .map((channel) => `LISTEN ${channel}`)
    .join(';');

  function subscribe(): void {
    retry = undefined;
    client.unsafe(statement).then(() => {
      for (const heard of Object.values(channels)) heard();
    }, again);
  }

  function again(): void {
    if (!stopped) retry ??= setTimeout(subscribe, LISTEN_RETRY_MS);
  }

  subscribe();
  return {
    stop: async () => {
      stopped = true;
      clearTimeout(retry);
      await client.end({ timeout: 0 });
    },
  };
}

const LISTEN_RETRY_MS = 1_000;

/** `onnotify` is what the driver's listen() is made of. */
type ClientOptions = Pick<postgres.Options<never>, 'onclose' | 'max_lifetime'> & {
  onnotify?: (channel: string) => void;
};

function createClient(url: string, options: ClientOptions = {}): postgres.Sql {
  return postgres(url, {
    max: 1,
    // But for those that naming picks (sessions.ts).
    prepare: false,
    // The driver would ask for array types on every connection, and nobody waits for that question: cut in the middle of
    // it, a connection would end the process. Arrays are sent as text here (arrays.ts) and never read.
    fetch_types: false,
    connect_timeout: 5,
    backoff: () => 0.2,
    onnotice: () => undefined,
    // What rows are read back with must not hang on the server's settings.
    connection: { application_name: 'firelock', TimeZone: 'UTC', DateStyle: 'ISO' },
    ...options,
  });
}
