import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Plugin, build } from 'vite';
import { sourcesHash } from '../../../scripts/support/sources-hash.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const BUNDLES = join(ROOT, 'node_modules', '.cache', 'firelock-daemon');
const A_DAY_MS = 24 * 60 * 60 * 1000;

/**
 * `src/main.ts` with all that it imports, in a few files: half of what a daemon takes to start is finding and compiling 1,500 modules.
 * Answers the path of its main module. It is made when its sources have changed; runs that have begun keep theirs.
 */
export async function daemonBundle(): Promise<string> {
  const sources = ['src', 'package-lock.json', 'test/support/runner/daemon-bundle.ts'];
  const directory = join(BUNDLES, await sourcesHash(ROOT, sources));
  const main = join(directory, 'main.mjs');
  if (existsSync(main)) return main;
  await removeOld();
  const draft = `${directory}.${process.pid}`;
  await build({
    ...{ root: ROOT, configFile: false, publicDir: false, logLevel: 'error', plugins: [knowingItsPlace] },
    ssr: { noExternal: true },
    build: {
      ...{ ssr: join(ROOT, 'src', 'main.ts'), outDir: draft, target: 'esnext', minify: false },
      // By this ending Node knows what they are, and need not look into them.
      rolldownOptions: {
        output: { entryFileNames: 'main.mjs', chunkFileNames: '[name]-[hash].mjs', keepNames: true },
      },
    },
  });
  // Another run may have done the same at the same time.
  await rename(draft, directory).catch(() => rm(draft, { recursive: true }));
  return main;
}

/** Files that a module names by its own place are found where they are. */
const knowingItsPlace: Plugin = {
  name: 'knowing-its-place',
  transform: {
    filter: { code: /import\.meta\.(?:url|dirname)|__dirname/ },
    handler: (code, id) =>
      code
        .replaceAll(/\bimport\.meta\.url\b/g, JSON.stringify(pathToFileURL(id).href))
        .replaceAll(/\b(?:import\.meta\.dirname|__dirname)\b/g, JSON.stringify(dirname(id))),
  },
};

async function removeOld(): Promise<void> {
  await mkdir(BUNDLES, { recursive: true });
  for (const name of await readdir(BUNDLES)) {
    const path = join(BUNDLES, name);
    if (Date.now() - (await stat(path)).mtimeMs > A_DAY_MS) await rm(path, { recursive: true });
  }
}
