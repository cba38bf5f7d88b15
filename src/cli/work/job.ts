import { type ChildProcess, type StdioOptions, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { chmod, unlink, writeFile } from 'node:fs/promises';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Exit } from './job-end.ts';
import type { Launch } from './launch.ts';
import { atMost } from '../common/patience.ts';
import type { ProcessGuard } from './process-guard.ts';

/** A command that runs, in a process group of its own. */
export interface Job {
  /** Once the command itself has ended and all that it printed until then has been read. Never rejects. */
  readonly ended: Promise<Exit>;
  /** Ends its whole group: TERM, and KILL after the grace. */
  end(): Promise<void>;
}

export interface JobDeps {
  guard: ProcessGuard;
  /** For files of this worker alone. */
  folder: string;
  graceSeconds: number;
  onOutput: (bytes: Uint8Array) => void;
}

/**
 * Waits for a word before it becomes the command, so that the guard knows its group before anything in it begins; if the worker dies
 * first, there is none. The shell tells of a command that is not there as any shell does.
 */
const GATE = 'read -r go <&3 || exit 125; exec "$@" 3<&-';

/**
 * What a crontab sets is for its command. What makes that another account's runs as root: it gets neither a PATH nor a library of the
 * crontab, and the command's variables come from a file that only a process of its account opens.
 */
const AS_ANOTHER = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
const SET_VARIABLES = '. /dev/fd/4; exec "$@" 4<&-';

let serial = 0;

/** @throws if this machine has no room for it */
export async function startJob(launch: Launch, deps: JobDeps): Promise<Job> {
  const { guard, folder, graceSeconds, onOutput } = deps;
  const path = `${folder}/${(serial += 1)}`;
  const input = await inputFile(`${path}.in`, launch.stdin);
  const output = await outputPipe(`${path}.out`);
  const variables = launch.as && (await inputFile(`${path}.env`, exportsOf(launch.env)));
  const child = spawnGated(launch, { input, output: output.writer, variables });
  const stream = new Socket({ fd: output.reader, readable: true, writable: false });
  let read = 0;
  stream
    .on('error', () => undefined)
    .on('data', (bytes: Uint8Array) => {
      read += bytes.length;
      onOutput(bytes);
    });
  const exited = exitOf(child);
  const { pid } = child;
  if (pid !== undefined) guard.add(pid);
  const gate = child.stdio[3] as Socket;
  gate.on('error', () => undefined).end('go\n');
  let isEnding = false;
  return {
    ended: exited.then(async (exit) => {
      await quiet(stream, () => read);
      await leave(stream, `${path}.out`);
      // What it has left in the background goes on, unless it is being ended.
      if (pid !== undefined && !isEnding) guard.remove(pid);
      return exit;
    }),
    end: async () => {
      if (pid === undefined) return;
      isEnding = true;
      await endGroup(pid, graceSeconds);
      guard.remove(pid);
    },
  };
}

function spawnGated(
  { words, as, env, cwd = process.cwd() }: Launch,
  { input, output, variables }: { input: number; output: number; variables: number | undefined },
): ChildProcess {
  const others = variables === undefined ? [] : [variables];
  try {
    const stdio: StdioOptions = [input, output, output, 'pipe', ...others];
    const started = as ? [...as, '/bin/sh', '-c', SET_VARIABLES, 'sh', ...words] : words;
    return spawn('/bin/sh', ['-c', GATE, 'sh', ...started], {
      ...{ cwd, env: as ? AS_ANOTHER : env, detached: true, stdio },
    });
  } finally {
    for (const file of [input, output, ...others]) closeSync(file);
  }
}

/** For a shell. It would drop variables with other names by itself. */
function exportsOf(env: Launch['env']): string {
  return Object.entries(env)
    .filter(([name]) => /^[a-z_]\w*$/i.test(name))
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'\n`)
    .join('');
}

/** A file and no pipe: it needs no one to write it, and a command may open it as /dev/stdin. */
async function inputFile(path: string, text: string): Promise<number> {
  await writeFile(path, text);
  // Whoever has it may open it again: a command of another user as well.
  await chmod(path, 0o644);
  const file = openSync(path, 'r');
  await unlink(path);
  return file;
}

/**
 * One pipe for both streams, so that their lines keep their order. It has a name, since Node's own pipes are sockets, which a
 * command cannot open as /dev/stdout; any user may write to it who has it, and nobody else can see the folder.
 */
async function outputPipe(path: string): Promise<{ reader: number; writer: number }> {
  await promisify(execFile)('mkfifo', ['-m', '666', path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reader, writer: openSync(path, constants.O_WRONLY) };
}

async function exitOf(child: ChildProcess): Promise<Exit> {
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return { code, signal };
  } catch (error) {
    return { code: null, signal: null, fault: error as NodeJS.ErrnoException };
  }
}

const QUIET_MS = 50;
const MOST_LOOKS = 40;

/** The end of the pipe may never come: what goes on in the background has it too. So it is read until nothing more comes. */
async function quiet(stream: Socket, read: () => number): Promise<void> {
  for (let look = 0; look < MOST_LOOKS && !hasEnded(stream); look += 1) {
    const before = read();
    await Promise.race([once(stream, 'end').catch(() => undefined), delay(QUIET_MS)]);
    if (read() === before) return;
  }
}

/** Reads what nobody keeps, so that its writers do not end by a broken pipe, also after the worker. */
const DRAIN = 'exec <"$1"; rm -f "$1"; echo; exec cat >/dev/null';

async function leave(stream: Socket, path: string): Promise<void> {
  if (hasEnded(stream)) await unlink(path).catch(() => undefined);
  else {
    const drain = spawn('/bin/sh', ['-c', DRAIN, 'sh', path], {
      ...{ cwd: '/', detached: true, stdio: ['ignore', 'pipe', 'ignore'] },
    });
    drain.on('error', () => undefined);
    drain.unref();
    // The last of them may have ended meanwhile: then its opening waits in vain.
    const begun = Promise.race([once(drain.stdout as Socket, 'data'), once(stream, 'end')]);
    await atMost(
      DRAIN_MS,
      begun.catch(() => undefined),
    );
    if (hasEnded(stream)) drain.kill('SIGKILL');
  }
  stream.destroy();
}

function hasEnded({ readableEnded }: Socket): boolean {
  return readableEnded;
}

const DRAIN_MS = 5_000;
const LOOK_MS = 100;

async function endGroup(group: number, graceSeconds: number): Promise<void> {
  let isThere = signalGroup(group, 'SIGTERM');
  for (let waited = 0; isThere && waited < graceSeconds * 1000; waited += LOOK_MS) {
    await delay(LOOK_MS);
    isThere = signalGroup(group, 0);
  }
  if (isThere) signalGroup(group, 'SIGKILL');
}

/** False: nobody is in it any more. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}
