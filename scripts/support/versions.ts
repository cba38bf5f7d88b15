import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pack } from './package.ts';

const root = join(import.meta.dirname, '..', '..');

/** The newest tag of a release; while there is none, the commit before the newest migration. */
export function versionBefore(): string {
  const [tag = ''] = git('tag', '--list', 'v*', '--sort=-v:refname').split('\n');
  if (tag !== '') return tag;
  return git('rev-parse', `${git('log', '-1', '--format=%H', '--', 'drizzle/meta/_journal.json')}^`);
}

/** Builds what a commit has, in a folder of its own, and packs it into `destination`; answers the archive. */
export function packCommit(ref: string, destination: string): string {
  const checkout = mkdtempSync(join(tmpdir(), 'firelock-version-'));
  git('worktree', 'add', '--detach', '--force', checkout, ref);
  try {
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'));
    const manifest = join(checkout, 'package.json');
    const own = JSON.parse(readFileSync(manifest, 'utf8')) as { files?: string[] };
    // From before there were packages.
    if (own.files === undefined)
      writeFileSync(manifest, JSON.stringify({ ...own, files: ['dist', 'drizzle'] }));
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
