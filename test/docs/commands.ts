import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { firelock } from '../cli/cli.ts';
import { type Loopback, serveHttp } from '../support/loopback.ts';

/**
 * Does commands of firelock in this process for the shell of a page: a process for each of them would take minutes. The URL says
 * where firelock is unless FIRELOCK_URL does.
 */
export function serveCommands(firelockUrl: string): Promise<Loopback> {
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
