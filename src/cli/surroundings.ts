import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import type { Config } from '../config/config.ts';
import type { Instant } from '../core/instant.ts';
import type { Clock } from '../runtime/clock.ts';
import { EXIT } from './exit-codes.ts';
import { isZone } from '../core/zones/zone.ts';

interface Stream {
  /** Bytes: where no terminal shows them. */
  write(text: string | Uint8Array): void;
  /** Resolves when it takes more. */
  written?(): Promise<void>;
  readonly isTerminal: boolean;
  /** Of the terminal. */
  readonly columns?: number | undefined;
}

/** Everything that a command sees of the process around it; tests bring their own. */
export interface Surroundings {
  readonly out: Stream;
  readonly err: Stream;
  readonly input: {
    readonly isTerminal: boolean;
    /** All of standard input. */
    read(): Promise<Buffer>;
    /** The next line that the user types; null: the input has ended. */
    readLine(): Promise<string | null>;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Instant;
  /** IANA name of the reader's zone; null: it has none that is known. */
  readonly zone: string | null;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  readonly version: string;
  /** Work that needs the configuration and the log of the daemon; each answers the exit code. */
  readonly daemon: DaemonCommands;
}

export interface DaemonCommands {
  serve(): Promise<number>;
  /** Starts the embedded database first if the work is on that one. */
  onDatabase(work: DatabaseWork): Promise<number>;
}

export type DatabaseOptions = Config & {
  databaseUrl: string;
  signal: AbortSignal;
  print: (line: string) => void;
};

/** Answers the exit code. */
export type DatabaseWork = (options: DatabaseOptions) => Promise<number>;

interface Given extends Pick<Surroundings, 'version' | 'daemon'> {
  clock: Clock;
}

/** What a command gets from the process itself. */
export function processSurroundings({ clock, version, daemon }: Given): Surroundings {
  const { stdout, stderr, stdin, env } = process;
  // The reader closes the pipe once it has read enough, as `head` does.
  for (const stream of [stdout, stderr]) stream.on('error', () => process.exit(EXIT.failed));
  let interrupted: AbortSignal | undefined;
  return {
    out: {
      write: (text) => void stdout.write(text),
      written: async () => {
        if (stdout.writableNeedDrain) await once(stdout, 'drain');
      },
      isTerminal: stdout.isTTY,
      get columns() {
        return stdout.isTTY ? stdout.columns : undefined;
      },
    },
    err: { write: (text) => void stderr.write(text), isTerminal: stderr.isTTY },
    input: {
      isTerminal: stdin.isTTY,
      read: () => buffer(stdin),
      readLine: () => readLine((interrupted ??= untilInterrupted(clock))),
    },
    env,
    now: () => clock.now(),
    zone: readerZone(env['TZ'], Intl.DateTimeFormat().resolvedOptions().timeZone),
    // The daemon handles signals itself: only a command that uses the signal listens for Ctrl-C.
    get signal() {
      return (interrupted ??= untilInterrupted(clock));
    },
    version,
    daemon,
  };
}

/** From a terminal, a program between it and this process may pass on what came here already: npm does. */
const SAME_SIGNAL_MS = 500;

/** A second Ctrl-C does not wait for what the first one began. */
function untilInterrupted(clock: Clock): AbortSignal {
  const controller = new AbortController();
  let first: number | undefined;
  process.on('SIGINT', () => {
    if (first !== undefined && clock.monotonic() - first >= SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
    first ??= clock.monotonic();
    controller.abort();
  });
  return controller.signal;
}

function readLine(signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    // Not `terminal`: Ctrl-C is to reach the process.
    const lines = createInterface({ input: process.stdin, terminal: false });
    const end = () => lines.close();
    signal.addEventListener('abort', end, { once: true });
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => {
      signal.removeEventListener('abort', end);
      resolve(null);
    });
  });
}

/**
 * The zone that a reader's times are shown in. `TZ` may be anything that POSIX or the C library allows (empty, `UTC0`,
 * `:/etc/localtime`, `CET-1CEST,…`), and what Node makes of that is none, or the wrong one. Null: it is no IANA name.
 * `ofMachine`: what Node says, which counts where there is no `TZ`.
 */
export function readerZone(tz: string | undefined, ofMachine: string | undefined): string | null {
  const name = tz === undefined ? (ofMachine ?? '') : tz.replace(/^:/, '');
  return isZone(name) ? name : null;
}
