import { sql } from 'drizzle-orm';
import { type Hosts, hostsOf } from './hosts.ts';
import { openBest } from './lasting-connection.ts';
import type { Session } from './session.ts';

/** What is known of the connections that the server gives. */
interface Sparing {
  /** False: something else needs a connection more. */
  mayListen(): boolean;
  isTooMany(error: unknown): boolean;
  /** Called when a connection is needed elsewhere. */
  onScarce(giveUp: () => void): void;
}

const ENOUGH: Sparing = { mayListen: () => true, isTooMany: () => false, onScarce: () => undefined };

const RETRY_MS = 1_000;
const RETRY_IF_SCARCE_MS = 10_000;

/**
 * Calls the function of a channel (an SQL identifier) for each NOTIFY on it, and all functions after every
 * (re)connection, when some may have been missed. A hint: behind a pooler in transaction mode, no NOTIFY arrives.
 */
export function listen(
  url: string,
  channels: Record<string, () => void>,
  sparing = ENOUGH,
): { stop: () => Promise<void> } {
  const listening = new Listening(hostsOf(url), channels, sparing);
  void listening.subscribe();
  return { stop: () => listening.stop() };
}

class Listening {
  readonly #hosts: Hosts;
  readonly #channels: Record<string, () => void>;
  readonly #sparing: Sparing;
  readonly #unwatch: () => void;
  #retry: NodeJS.Timeout | undefined;
  #session: Session | undefined;
  #isWanted = true;

  constructor(hosts: Hosts, channels: Record<string, () => void>, sparing: Sparing) {
    this.#hosts = hosts;
    this.#channels = channels;
    this.#sparing = sparing;
    const giveUp = () => void this.#session?.destroy();
    // A frozen server sends nothing, and does not close its connections.
    this.#unwatch = hosts.onMoved(giveUp);
    sparing.onScarce(giveUp);
  }

  async subscribe(): Promise<void> {
    this.#retry = undefined;
    const retryMs = this.#sparing.mayListen() ? await this.#listen() : RETRY_MS;
    if (this.#isWanted) this.#retry ??= setTimeout(() => void this.subscribe(), retryMs);
  }

  async stop(): Promise<void> {
    this.#isWanted = false;
    this.#unwatch();
    clearTimeout(this.#retry);
    await this.#session?.close();
  }

  /** Until the connection is lost; answers when to try again. */
  async #listen(): Promise<number> {
    const channels = this.#channels;
    const statement = Object.keys(channels)
      .map((channel) => `LISTEN ${channel}`)
      .join(';');
    let opened: Session | undefined;
    try {
      const onNotify = (channel: string) => channels[channel]?.();
      opened = this.#session = await openBest(this.#hosts, { isWanted: () => this.#isWanted, onNotify });
      await opened.executor.execute(sql.raw(statement));
      for (const heard of Object.values(channels)) heard();
      await opened.lost;
    } catch (error) {
      void opened?.destroy();
      if (this.#sparing.isTooMany(error)) return RETRY_IF_SCARCE_MS;
    }
    return RETRY_MS;
  }
}
