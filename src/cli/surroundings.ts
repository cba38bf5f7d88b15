import type { Config } from '../config/config.ts';
import type { Instant } from '../core/instant.ts';

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
