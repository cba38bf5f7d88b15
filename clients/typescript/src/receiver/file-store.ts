import { type FileHandle, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Remembered, type Reply, type RunStore, end, judge } from './store.ts';

export interface FileStore extends RunStore {
  close(): Promise<void>;
}

interface Line {
  runId: string;
  attempt: number;
  reply: Reply | null;
}

const KEEP_DAYS = 32;
const DAY_MS = 86_400_000;

/**
 * Remembers runs in a file of JSON lines: also over restarts, kills and power failures. For one process at a time. When it
 * is opened it drops runs whose `scheduledFor` is more than `keepDays` ago (32: two more than firelock keeps ended runs by
 * default); it holds all others in memory.
 */
export async function openFileStore(path: string, { keepDays = KEEP_DAYS } = {}): Promise<FileStore> {
  const runs = await load(path, Date.now() - keepDays * DAY_MS);
  const file = await rewritten(path, runs);
  let last = Promise.resolve();
  /** One line after the other: two writes at once could mix. */
  const write = (line: Line, mustLast: boolean) => {
    const written = last.then(async () => {
      await file.appendFile(`${JSON.stringify(line)}\n`);
      if (mustLast) await file.datasync();
    });
    last = written.catch(() => undefined);
    return written;
  };
  return {
    begin: async (runId, attempt) => {
      const verdict = judge(runs, runId, attempt);
      if (verdict.state !== 'new') return verdict;
      // Before the work begins, so that a lower attempt is refused also after a restart.
      await write({ runId, attempt, reply: null }, false).catch((error: unknown) => {
        end(runs, runId, attempt, null);
        throw error;
      });
      return verdict;
    },
    finish: async (runId, attempt, reply) => {
      end(runs, runId, attempt, reply);
      await write({ runId, attempt, reply }, true);
    },
    release: (runId, attempt) => {
      end(runs, runId, attempt, null);
      return Promise.resolve();
    },
    close: async () => {
      await last;
      await file.close();
    },
  };
}

/** What a process that ended was working on is not busy any more. */
async function load(path: string, oldest: number): Promise<Map<string, Remembered>> {
  const runs = new Map<string, Remembered>();
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  });
  for (const line of text.split('\n')) {
    const read = lineOf(line);
    if (read === null || timeOf(read.runId) < oldest) continue;
    const known = runs.get(read.runId);
    const attempt = Math.max(read.attempt, known?.attempt ?? 0);
    runs.set(read.runId, { attempt, isBusy: false, reply: read.reply ?? known?.reply ?? null });
  }
  return runs;
}

/** Null: it was being written when the power failed. */
function lineOf(text: string): Line | null {
  try {
    return text === '' ? null : (JSON.parse(text) as Line);
  } catch {
    return null;
  }
}

/** The id of a run begins with the 48 bits of its `scheduledFor`. */
function timeOf(runId: string): number {
  const bits = /^([0-9a-f]{8})-([0-9a-f]{4})-/i.exec(runId);
  return bits === null ? Infinity : parseInt(`${bits[1] ?? ''}${bits[2] ?? ''}`, 16);
}

/** One line for each run, in a new file that takes the place of the old one when it is whole. */
async function rewritten(path: string, runs: ReadonlyMap<string, Remembered>): Promise<FileHandle> {
  const lines = [...runs].map(([runId, { attempt, reply }]) => JSON.stringify({ runId, attempt, reply }));
  const fresh = `${path}.new`;
  const file = await open(fresh, 'w');
  await file.writeFile(lines.map((line) => `${line}\n`).join(''));
  await file.datasync();
  await file.close();
  await rename(fresh, path);
  await syncDirectory(path);
  return open(path, 'a');
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(dirname(path), 'r').catch(() => null);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
