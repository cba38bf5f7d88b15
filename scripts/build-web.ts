/**
 * Builds web/ into dist/web/, and says how large it is; fails above the bound of what a browser
 * may have to load: before it shows the first page, and in all.
 *
 *     node scripts/build-web.ts [--if-stale]     with it: only if dist/web/ was made of other sources
 */
import { existsSync } from 'node:fs';
import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { filesBelow, sourcesHash } from './support/sources-hash.ts';

const MAX_FIRST_BYTES = 65_000;
const MAX_BYTES = 100_000;

const root = join(import.meta.dirname, '..');
const built = join(root, 'dist', 'web');
const hash = await sourcesHash(root, [
  ...['web', 'clients/typescript/src/json-text.ts', 'src/core/http', 'src/core/json-text.ts', 'src/core/instant.ts'],
  ...['src/core/connections/join-url.ts', 'src/core/alerts/texts', 'package-lock.json'],
]);
const isFresh = (await readFile(join(built, 'SOURCES'), 'utf8').catch(() => '')) === hash;

if (!(process.argv.includes('--if-stale') && isFresh)) await build();

async function build(): Promise<void> {
  // Whatever calls this: a test runner would have libraries bring their checks for developers.
  process.env['NODE_ENV'] = 'production';
  // Packages for development only: where they are left out, the daemon goes without its dashboard.
  const vite = await import('vite').catch((error: unknown) => {
    // There, but broken: a build that went on would lose the dashboard without a word.
    if (!(error instanceof Error && error.message.startsWith("Cannot find package 'vite'"))) throw error;
    return null;
  });
  if (vite === null) {
    console.error('The dashboard is not built: vite is not installed. The API works without it.');
    return;
  }
  // Beside the old one, and then in its place: a daemon may start meanwhile.
  const fresh = `${built}.${process.pid}`;
  let later: ReadonlySet<string>;
  try {
    const outDir = { build: { outDir: fresh, emptyOutDir: true } };
    const output = await vite.build({
      configFile: join(root, 'web', 'vite.config.ts'),
      logLevel: 'warn',
      ...outDir,
    });
    later = loadedLater(output);
    await cp(join(root, 'web', 'pages.json'), join(fresh, 'pages.json'));
    await writeFile(join(fresh, 'SOURCES'), hash);
    await replace(fresh);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  await weigh(later);
}

/** Files of code that no file loads at once which the document loads at once. */
function loadedLater(output: Awaited<ReturnType<typeof import('vite').build>>): ReadonlySet<string> {
  if (!('output' in output)) throw new Error('the dashboard was not built as one');
  const chunks = output.output.filter((file) => file.type === 'chunk');
  const first = new Set(chunks.filter(({ isEntry }) => isEntry).map(({ fileName }) => fileName));
  // A set goes on to what is added to it meanwhile.
  for (const name of first) {
    for (const other of chunks.find(({ fileName }) => fileName === name)?.imports ?? []) first.add(other);
  }
  return new Set(chunks.map(({ fileName }) => fileName).filter((name) => !first.has(name)));
}

/** Another process may do the same at the same time, from the same sources: then its files are as good. */
async function replace(fresh: string): Promise<void> {
  const old = `${fresh}.old`;
  await rename(built, old).catch(() => undefined);
  await rename(fresh, built).catch((error: unknown) => {
    if (!existsSync(join(built, 'SOURCES'))) throw error;
  });
  await rm(old, { recursive: true, force: true });
}

async function weigh(later: ReadonlySet<string>): Promise<void> {
  const files = (await filesBelow(built)).filter((file) => /\.(html|js|css|svg)$/.test(file));
  let [first, all] = [0, 0];
  for (const file of files) {
    const bytes = gzipSync(await readFile(file), { level: 9 }).length;
    all += bytes;
    if (!later.has(relative(built, file))) first += bytes;
  }
  const [atFirst, inAll] = [first, all].map(inKilobytes);
  console.log(`The dashboard is built. Gzipped, a browser loads ${atFirst} at first, and ${inAll} in all.`);
  if (first <= MAX_FIRST_BYTES && all <= MAX_BYTES) return;
  console.error(`It may load ${inKilobytes(MAX_FIRST_BYTES)} at first, and ${inKilobytes(MAX_BYTES)} in all.`);
  process.exitCode = 1;
}

function inKilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
