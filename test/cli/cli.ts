import { runCommand } from '../../src/cli/program.ts';
import type { DatabaseWork, Surroundings } from '../../src/cli/surroundings.ts';
import { printable } from '../../src/cli/terminal/shown-text.ts';
import { readConfig } from '../../src/config/config.ts';

interface Run {
  code: number;
  out: string;
  err: string;
  /** Standard output, parsed. */
  json: () => unknown;
}

interface Around {
  /** Of the server. */
  url?: string;
  /** Of the database of commands that work on one. */
  databaseUrl?: string;
  env?: Record<string, string>;
  /** Both streams and the input are a terminal, so many columns wide. */
  terminal?: number;
  /** What is typed, line by line. */
  typed?: string[];
  /** All of standard input. */
  input?: string | Buffer;
  now?: number;
  zone?: string | null;
  signal?: AbortSignal;
  onOut?: (said: string | Uint8Array) => void;
  daemon?: Partial<Surroundings['daemon']>;
}

/** Runs a command as main does, with everything around it captured. Its line, or its words, of which the first may be several. */
export async function firelock(command: string | readonly string[], around: Around = {}): Promise<Run> {
  const said = { out: '', err: '' };
  const [line = '', ...more] = typeof command === 'string' ? [command] : command;
  const words = line === '' ? [] : line.split(' ');
  const code = await runCommand([...words, ...more], surroundings(around, said));
  return { code, ...said, json: () => JSON.parse(said.out) as unknown };
}

export function surroundings(around: Around = {}, said = { out: '', err: '' }): Surroundings {
  const { terminal, typed = [] } = around;
  const isTerminal = terminal !== undefined;
  const noDaemon = () => Promise.reject(new Error('no daemon here'));
  const signal = around.signal ?? new AbortController().signal;
  const print = (line: string) => void (said.out += `${printable(line)}\n`);
  const onDatabase = (work: DatabaseWork) => {
    const { databaseUrl = '', env } = around;
    const read = readConfig({ DATABASE_URL: databaseUrl, ...env });
    if ('faults' in read) throw new Error(read.faults.join('\n'));
    return work({ ...read.config, databaseUrl, signal, print });
  };
  return {
    out: {
      write: (text) => {
        said.out += typeof text === 'string' ? text : Buffer.from(text).toString();
        around.onOut?.(text);
      },
      isTerminal,
      columns: terminal,
    },
    err: { write: (text) => void (said.err += String(text)), isTerminal },
    input: {
      isTerminal,
      read: () => Promise.resolve(Buffer.from(around.input ?? '')),
      readLine: () => Promise.resolve(typed.shift() ?? null),
    },
    env: { ...(around.url === undefined ? {} : { FIRELOCK_URL: around.url }), ...around.env },
    now: () => around.now ?? Date.UTC(2030, 0, 1),
    zone: around.zone === undefined ? 'UTC' : around.zone,
    signal,
    version: '0.0.0-test',
    daemon: {
      serve: noDaemon,
      onDatabase: around.databaseUrl === undefined ? noDaemon : onDatabase,
      ...around.daemon,
    },
  };
}
