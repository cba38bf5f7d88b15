import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..', '..');

interface Build {
  main: string;
  remove(): void;
}

/** Builds the daemon as `npm run build` does, into a folder of its own: dist/ may be in use. */
export function buildDaemon(): Build {
  const directory = mkdtempSync(join(tmpdir(), 'firelock-bench-build-'));
  const remove = () => rmSync(directory, { recursive: true, force: true });
  for (const part of ['package.json', 'drizzle']) {
    cpSync(join(root, part), join(directory, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(directory, 'dist')];
  const { status } = spawnSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
  if (status !== 0) {
    remove();
    throw new Error('the daemon does not build');
  }
  return { main: join(directory, 'dist', 'main.js'), remove };
}
