/**
 * The keeper's own process: PostgreSQL, the instances and their directory are its own, and it removes them when the demo
 * is gone, however that came about: the channel to it closes then. A terminal's Ctrl-C does not reach it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { startEmbeddedPostgres } from '../../../local-postgres/embedded-postgres.ts';
import { isFree } from '../../../local-postgres/cluster.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { reasonOf } from '../../../runtime/reason.ts';
import { type KeeperMessage, childEnvironment, type KeeperRequest } from './keeper.ts';

/** As this file is named: from the sources or built. */
const MAIN = join(import.meta.dirname, '..', '..', '..', `main${extname(import.meta.filename)}`);
const LAST_LINES = 10;
/** Below those that systems give to outgoing connections: an instance comes back to its own. */
const PORTS = { lowest: 10_000, highest: 19_999 };

const running = new Map<number, ChildProcess>();
const ports = new Map<number, number>();
let ending = false;

process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end);
process.on('uncaughtException', giveUp);
const directory = makeDirectory();
const database = directory.then(startDatabase);
database.then(
  ({ whatRuns }) => tell({ type: 'database', whatRuns }),
  (error: unknown) =>
    giveUp(`the embedded PostgreSQL does not start, and the demo uses no other: ${reasonOf(error)}`),
);
process.on('message', (request: KeeperRequest) => {
  if (request.type === 'start') start(request.number).catch(giveUp);
  else running.get(request.number)?.kill('SIGKILL');
});
// It may be gone already: what listens here was loaded meanwhile.
if (!process.connected) end();

async function makeDirectory(): Promise<string> {
  const made = await realpath(await mkdtemp(join(tmpdir(), 'firelock-demo-')));
  // Started by root, PostgreSQL runs as another user, who has to get in.
  await chmod(made, 0o755);
  return made;
}

function startDatabase(dataDir: string) {
  return startEmbeddedPostgres({ dataDir, clock: systemClock, onEvent: () => undefined });
}

async function start(number: number): Promise<void> {
  const { url: databaseUrl } = await database;
  const port = ports.get(number) ?? (await freePort());
  if (ending) return;
  ports.set(number, port);
  const child = spawn(process.execPath, [MAIN], {
    env: { ...childEnvironment(process.env), DATABASE_URL: databaseUrl, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.set(number, child);
  const lastLines: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      lastLines.splice(0, lastLines.length + 1 - LAST_LINES, line);
      const message = messageOfLine(number, line);
      if (message !== null) tell(message);
    });
  }
  child.once('error', giveUp);
  child.once('close', () => {
    running.delete(number);
    tell({ type: 'ended', number, lastLines });
  });
  if (child.pid !== undefined)
    tell({ type: 'started', number, pid: child.pid, url: `http://127.0.0.1:${port}` });
}

async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.lowest, PORTS.highest + 1);
    if (![...ports.values()].includes(port) && (await isFree(port))) return port;
  }
}

function giveUp(error: unknown): void {
  tell({ type: 'failed', reason: reasonOf(error) });
  end();
}

function end(): void {
  if (ending) return;
  ending = true;
  cleanUp().then(
    () => process.exit(0),
    () => process.exit(1),
  );
}

async function cleanUp(): Promise<void> {
  const gone = [...running.values()].map((child) => {
    child.kill('SIGKILL');
    return once(child, 'close');
  });
  await Promise.all(gone);
  // It may be starting still.
  await database.then((started) => started.stop()).catch(() => undefined);
  const made = await directory;
  // As root it may be a link to where PostgreSQL's user can enter.
  const home = await realpath(join(made, 'postgres')).catch(() => made);
  for (const path of [home, made]) await rm(path, { recursive: true, force: true, maxRetries: 10 });
}

function tell(message: KeeperMessage): void {
  // Once the demo is gone, no one listens.
  if (process.connected) process.send?.(message, () => undefined);
}

interface Line {
  instanceId?: unknown;
  /** The one it had before it was declared dead. */
  previousId?: unknown;
  instanceIds?: unknown;
  msg?: unknown;
}

/** What the demo wants to know of a line that an instance has logged; null: nothing. */
function messageOfLine(number: number, line: string): KeeperMessage | null {
  // Most lines are about requests, and are not worth parsing.
  if (!line.includes('declared') && !line.includes('registered')) return null;
  const { instanceId, previousId, instanceIds, msg } = parsed(line);
  if (Array.isArray(instanceIds)) return { type: 'declaredDead', instanceIds: instanceIds.map(String) };
  const isNew = msg === 'registered as an instance' || previousId !== undefined;
  return isNew && typeof instanceId === 'string' ? { type: 'registered', number, instanceId } : null;
}

function parsed(line: string): Line {
  try {
    return JSON.parse(line) as Line;
  } catch {
    return {};
  }
}
