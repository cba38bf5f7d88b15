import { randomInt, randomUUID } from 'node:crypto';
import { readFile, rename } from 'node:fs/promises';
import { createServer } from 'node:net';
import { unlessMissing, writeNew } from './files.ts';
import type { Home } from './home.ts';

/** Below the ports that systems give to outgoing connections, so that none of these blocks a restart. */
const LOWEST = 20_000;
const HIGHEST = 29_999;

/** The previous port if it is free, else another free one, which is then remembered. */
export async function choosePort(home: Home): Promise<number> {
  const remembered = Number(await unlessMissing(readFile(home.portFile, 'utf8')));
  if (remembered > 0 && remembered < 65_536 && (await isFree(remembered))) return remembered;
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    if (await isFree(port)) {
      await remember(home, port);
      return port;
    }
  }
  throw new Error(`no free port on 127.0.0.1 between ${LOWEST} and ${HIGHEST}`);
}

export async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}

async function remember(home: Home, port: number): Promise<void> {
  const draft = `${home.portFile}.draft-${randomUUID()}`;
  await writeNew(draft, `${port}\n`);
  await rename(draft, home.portFile);
}
