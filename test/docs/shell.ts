import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Block, blocksOf, fileNameOf, kindOf, placeOf, root, textOf } from './blocks.ts';
import { listingOf } from './listed.ts';
import { type Loopback, freePort, serveHttp } from '../support/loopback.ts';
import { firelock } from '../cli/cli.ts';

export interface Stage {
  /** Of the API; the pages call http://127.0.0.1:8080. */
  url: string;
  /** Where the pages say http://127.0.0.1:9000; absent: a free port, on which a block of the page may listen. */
  targetUrl?: string;
  env?: Record<string, string>;
  /** In the folder of the blocks, by their names. */
  files?: Record<string, string>;
  /** What else stands in the blocks for something that exists here. */
  instead?: Record<string, string>;
  /** Sent with every call, also where the page sends none. */
  token?: string;
  /** What is to be seen while that which the blocks have started still runs. */
  meanwhile?: (said: readonly Said[], terminal: () => Promise<string>) => Promise<void>;
}

/** What a block printed. */
export interface Said {
  block: Block;
  out: string;
  /** The lines of it that are JSON. */
  answers: unknown[];
}

/**
 * Runs the shell blocks of a page in one bash, in their order, in a folder of its own that has the page's files and
 * copies of what stands beside it. Fails with what was printed where a command does.
 */
export async function runPage(page: string, stage: Stage): Promise<Said[]> {
  const blocks = blocksOf(page).filter((block) => kindOf(block) === 'run' && listingOf(block) === undefined);
  const home = await mkdtemp(join(tmpdir(), 'firelock-docs-'));
  const commands = await serveCommands(stage.url);
  try {
    const folder = await prepareFolder(page, home, stage.files);
    const port = await freePort();
    const script = blocks.map((block, index) => `${begin(index)}\n${scriptOf(block, stage, port)}\n`);
    const setting = {
      HOME: home,
      CALLS: join(home, 'calls'),
      COMMANDS: commands.url,
      ...addresses(stage, port),
    };
    const env = { ...setting, ...stage.env };
    return await bash(PRELUDE + script.join(''), folder, env, async (code, out) => {
      const said = partsOf(out, blocks);
      const last = said.at(-1)?.block;
      if (code !== 0) throw new Error(`${last === undefined ? page : placeOf(last)} ended with ${code}:\n${out}`);
      await stage.meanwhile?.(said, () => readFile(join(setting.CALLS, 'terminal'), 'utf8'));
      return said;
    });
  } finally {
    await commands.close();
    await rm(home, { recursive: true, maxRetries: 10 });
  }
}

/** Copies of what the blocks of a page name, so that they may write beside it. */
async function prepareFolder(page: string, home: string, files: Record<string, string> = {}): Promise<string> {
  await mkdir(join(home, 'calls'));
  await mkdir(join(home, '.config', 'fish', 'completions'), { recursive: true });
  const named = ['deploy', 'examples'].filter((folder) => `${page} ${textOf(page)}`.includes(`${folder}/`));
  for (const folder of named) await cp(join(root, folder), join(home, folder), { recursive: true });
  const here = page.startsWith('examples/') ? join(home, 'examples') : home;
  const own = blocksOf(page).map((block) => [fileNameOf(block), block.text] as const);
  for (const [name, text] of [...own, ...Object.entries(files)])
    if (name !== null) await writeFile(join(here, name), text);
  return here;
}

/** With set -e a command that fails ends the script; -o pipefail: also within a pipe. */
const PRELUDE = `set -eo pipefail
curl() {
  command curl --silent --show-error --fail-with-body -w '\\n' \${TOKEN:+-H "authorization: Bearer $TOKEN"} "$@"
}
firelock() {
  local call="$CALLS/$BASHPID.$RANDOM"
  printf '%s\\0' "$PWD" "$@" > "$call.args"
  env -0 > "$call.env"
  command curl --silent --show-error --fail -H "x-call: $call" --data-binary @- "$COMMANDS"
  printf '%s' "$(< "$call.err")" >&2
  return "$(< "$call.code")"
}
npm() { [ "$1 $2 $3" = 'start -s --' ] && firelock "\${@:4}"; }
# Not ours to test.
jq() { cat > /dev/null; }
crontab() { echo '0 2 * * * /usr/bin/backup'; }
command -v openssl > /dev/null || openssl() { head -c "$3" /dev/urandom | base64; }
# A block that goes on until it is stopped, as in another terminal; returns when it listens.
in_another_terminal() {
  "$1" > "$CALLS/terminal" 2>&1 &
  until (exec 3<> "/dev/tcp/127.0.0.1/$2") 2> /dev/null; do sleep 0.05; done
}
`;

function scriptOf({ page, text }: Block, { url, targetUrl, instead = {} }: Stage, port: number): string {
  const entries = Object.entries({
    'http://127.0.0.1:8080': url,
    'http://127.0.0.1:9000': targetUrl ?? `http://127.0.0.1:${port}`,
    'listen(9000)': `listen(${port})`,
    ...instead,
  });
  const here = entries.reduce((script, [there, ours]) => script.replaceAll(there, ours), text);
  const listens = here.includes(`listen(${port})`) && !here.includes('&\n');
  if (listens) return `other() {\n${here}\n}\nin_another_terminal other ${port}`;
  // Its page says to stop what one example has left running before the next.
  return page.startsWith('examples/') ? `${here}\nkill -9 $(jobs -p) || true\nwait` : here;
}

/** Programs of examples/ learn by variables what pages say by addresses. */
function addresses({ url, targetUrl, token }: Stage, port: number): Record<string, string> {
  const target = targetUrl ?? `http://127.0.0.1:${port}`;
  const asked = token === undefined ? {} : { TOKEN: token, FIRELOCK_TOKEN: token };
  return { FIRELOCK_URL: url, PORT: String(port), RECEIVER_URL: target, RELAY_URL: target, ...asked };
}

const MARK = '\u001e';

function begin(index: number): string {
  return `printf '\\n\\036%s\\n' ${index}`;
}

function partsOf(out: string, blocks: readonly Block[]): Said[] {
  return out
    .split(MARK)
    .slice(1)
    .map((part, index) => {
      const lines = part.split('\n').slice(1);
      const answers = lines.flatMap((line) => jsonIn(line));
      const block = blocks[index];
      if (block === undefined) throw new Error(`more parts than blocks: ${part}`);
      return { block, out: lines.join('\n').trim(), answers };
    });
}

function jsonIn(line: string): unknown[] {
  if (!/^[{[]/.test(line)) return [];
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

/** Runs a script to its end, tells of it, and then kills what it has left running. */
async function bash<T>(
  script: string,
  cwd: string,
  env: Record<string, string> & { CALLS: string },
  tell: (code: number, out: string) => Promise<T>,
): Promise<T> {
  const written = join(env.CALLS, 'out');
  await writeFile(join(env.CALLS, 'script'), script);
  const file = await open(written, 'w');
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`;
  // Not pipes: what is left running would keep them open.
  const child = spawn('bash', [join(env.CALLS, 'script')], {
    cwd,
    env: { PATH: path, ...env },
    stdio: ['ignore', file.fd, file.fd],
    detached: true,
  });
  try {
    const [code] = (await once(child, 'exit')) as [number];
    await file.close();
    return await tell(code, await readFile(written, 'utf8'));
  } finally {
    killGroup(child);
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing is left of it.
  }
}

/**
 * Does commands of firelock in this process for the shell of a page: a process for each of them would take minutes. The URL says
 * where firelock is unless FIRELOCK_URL does.
 */
function serveCommands(firelockUrl: string): Promise<Loopback> {
  return serveHttp((request, response) => {
    perform(firelockUrl, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
}

/** The shell has written beside `x-call` where it stands, its arguments and its environment, and sends standard input. */
async function perform(url: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const call = String(request.headers['x-call']);
  const [folder = '', ...args] = listIn(await readFile(`${call}.args`, 'utf8'));
  const env = Object.fromEntries(
    listIn(await readFile(`${call}.env`, 'utf8')).map((line) => {
      const [name = '', ...value] = line.split('=');
      return [name, value.join('=')];
    }),
  );
  const { code, out, err } = await firelock(
    args.map((word, index) => (isFile(args[index - 1], join(folder, word)) ? join(folder, word) : word)),
    { url, env, input: await text(request), now: Date.now(), daemon: NO_DAEMON },
  );
  // 2 without a word on standard error: `plan` or `apply` has found something to change.
  await writeFile(`${call}.code`, String(code === 2 && err === '' ? 0 : code));
  await writeFile(`${call}.err`, err);
  response.end(out);
}

/** One that is there, or is to be written. */
function isFile(before: string | undefined, path: string): boolean {
  return before === '--crontab-out' || existsSync(path);
}

/** What works on the database of a daemon is understood, and then not done. */
const NO_DAEMON = { serve: () => Promise.resolve(0), onDatabase: () => Promise.resolve(0) };

function listIn(bytes: string): string[] {
  return bytes.split('\0').slice(0, -1);
}
