import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

interface Line {
  readonly event: string;
  readonly details: Record<string, unknown>;
}

/** A real process that uses the embedded PostgreSQL of a directory; all of its lines so far. */
export interface UserProcess {
  readonly process: ChildProcess;
  readonly lines: readonly Line[];
  /** Resolves with the details of the first such event; fails when the process ends without it. */
  heard(event: string): Promise<Record<string, unknown>>;
  /** Signals its whole process group, as a terminal does, and waits for its end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

export function startUser(dataDir: string): UserProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'user.ts'), dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const lines: Line[] = [];
  const ended = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line) as Line));
  return {
    process: child,
    lines,
    heard: async (event) => {
      for (;;) {
        const line = lines.find((candidate) => candidate.event === event);
        if (line !== undefined) return line.details;
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`ended without "${event}": ${JSON.stringify(lines)}`);
        }
        await sleep(20);
      }
    },
    end: async (signal) => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, signal);
      }
      await ended;
    },
  };
}

/** Starts a user and waits until it has the database; returns its URL beside it. */
export async function readyUser(dataDir: string): Promise<UserProcess & { url: string; whatRuns: string }> {
  const user = startUser(dataDir);
  const { url, whatRuns } = await user.heard('ready');
  return { ...user, url: String(url), whatRuns: String(whatRuns) };
}

/** The server's pid by its own lock file; undefined when it has stopped cleanly. */
export async function serverPid(dataDir: string): Promise<number | undefined> {
  try {
    const text = await readFile(join(dataDir, 'postgres', 'cluster', 'data', 'postmaster.pid'), 'utf8');
    return Number.parseInt(text, 10);
  } catch {
    return undefined;
  }
}
