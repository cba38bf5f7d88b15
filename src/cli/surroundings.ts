import type { Instant } from '../core/instant.ts';

interface Stream {
  write(text: string): void;
  readonly isTerminal: boolean;
  /** Of the terminal. */
  readonly columns?: number | undefined;
}

/** All that a command sees of the process around it; tests bring their own. */
export interface Surroundings {
  readonly out: Stream;
  readonly err: Stream;
  readonly input: {
    readonly isTerminal: boolean;
    /** All of standard input, as text. */
    read(): Promise<string>;
    /** The next line that is typed; null: there is none any more. */
    readLine(): Promise<string | null>;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => Instant;
  /** IANA name of the zone of whoever reads. */
  readonly zone: string;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  readonly version: string;
  /** What needs the configuration and the log of the daemon; each answers the exit code. */
  readonly daemon: {
    serve(): Promise<number>;
    resume(): Promise<number>;
  };
}
