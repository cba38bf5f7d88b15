import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack } from './package.ts';

const root = join(import.meta.dirname, '..', '..');

/** The newest tag of a release, if there is one. */
export function newestRelease(): string | undefined {
  return git('tag', '--list', 'v*', '--sort=-v:refname').split('\n').find(Boolean);
}

/** Builds what a commit has, in a folder of its own, and packs it into `destination`; answers the archive. */
export function packCommit(ref: string, destination: string): string {
  const checkout = mkdtempSync(join(tmpdir(), 'firelock-version-'));
  git('worktree', 'add', '--detach', '--force', checkout, ref);
  try {
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'));
    return packFolder(checkout, destination);
  } finally {
    git('worktree', 'remove', '--force', checkout);
    rmSync(checkout, { recursive: true, force: true });
  }
}

/** The same of the files as they are, with what is not committed. */
export function packFolder(folder: string, destination: string): string {
  execFileSync('npm', ['run', 'build'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  if (!existsSync(join(folder, 'dist', 'main.js'))) throw new Error(`${folder} does not build`);
  return join(destination, pack(folder, destination, '--ignore-scripts').filename);
}

function git(...words: string[]): string {
  return execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim();
}
