import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ATTACK } from '../support/runner/attack.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The files that git knows, or would add. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));
const known = new Set(files.flatMap((file) => [file, ...foldersAbove(file)]));

const SOURCE = /^(?:src|web\/src|test|bench|scripts)\/.*\.tsx?$/;
const folders = new Set(files.filter((file) => SOURCE.test(file)).map(dirname));
const readmes = files.filter((file) => basename(file) === 'README.md' && dirname(file) !== '.');

/** A folder of so many files needs no README of its own: that of the folder around it names them. */
const FEW = 3;

describe('the README of a folder', () => {
  test('exists wherever there is source, but for few files', () => {
    const filesOf = Map.groupBy(files, dirname);
    const bare = [...folders].filter((folder) => !known.has(`${folder}/README.md`));
    const isSmall = (folder: string) => (filesOf.get(folder) ?? []).length <= FEW;
    expect(bare.filter((folder) => !isSmall(folder) || readmeOf(`${folder}/x`) === null)).toEqual([]);
  });

  test('names only files and folders that exist', () => {
    const missing = readmes.flatMap((readme) =>
      namesIn(textOf(readme))
        .filter((name) => !exists(dirname(readme), name))
        .map((name) => `${readme}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  test('names every file of a folder of src', () => {
    const unnamed = files.filter(
      (file) =>
        file.startsWith('src/') &&
        file.endsWith('.ts') &&
        !textOf(readmeOf(file) ?? file).includes(`\`${basename(file)}\``),
    );
    expect(unnamed).toEqual([]);
  });
});

describe('in src', () => {
  const source = files.filter((file) => file.startsWith('src/') && file.endsWith('.ts'));

  test('two files never export the same name', () => {
    const exported = source.flatMap((file) => exportsOf(textOf(file)).map((name) => ({ name, file })));
    expect(repeated(exported, ({ name }) => name)).toEqual([]);
  });
});

function foldersAbove(file: string): string[] {
  const above = dirname(file);
  return above === '.' ? [] : [above, ...foldersAbove(above)];
}

/** Of its folder, or of the one around that. */
function readmeOf(file: string): string | null {
  const places = foldersAbove(file).slice(0, 2);
  return places.map((folder) => `${folder}/README.md`).find((readme) => known.has(readme)) ?? null;
}

function textOf(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Paths in code quotes; those with a wildcard or a capital placeholder (`NAME`) name no single file. */
function namesIn(text: string): string[] {
  const quoted = [...text.matchAll(/`([\w./-]+(?:\.(?:tsx?|m?js|md|json|pml|css|sh)|\/))`/g)];
  return quoted.flatMap(([, name = '']) => (/^\/|[A-Z]{4}(?!ME)/.test(name) ? [] : [name.replace(/\/$/, '')]));
}

/** Seen from the folder or from one above it, from the top, or anywhere if it is a bare name of a file. */
function exists(folder: string, name: string): boolean {
  const places = [folder, ...foldersAbove(`${folder}/x`), '.', 'src', 'test', 'spec', 'web/src'];
  if (places.some((place) => known.has(normalize(join(place, name))))) return true;
  return BUILT.test(name) || (!name.includes('/') && files.some((file) => basename(file) === name));
}

/** What `npm run build` and `npm run client` write. */
const BUILT = /^dist\b|\bgenerated$|\.gen\.ts$/;

function exportsOf(text: string): string[] {
  const found = text.matchAll(/^export (?:async )?(?:function\*?|const|class|interface|type|enum) (\w+)/gm);
  return [...found].map(([, name = '']) => name);
}

function repeated<T>(items: readonly T[], nameOf: (item: T) => string): string[] {
  const groups = Map.groupBy(items, nameOf);
  return [...groups].filter(([, group]) => group.length > 1).map(([name]) => name);
}

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

test('test/attacks/README.md names every file of attacks, and no other', () => {
  const [, section = ''] = read('test/attacks/README.md').split('\n## What was tried\n');
  const named = [...section.matchAll(/\]\(([^)]+\.test\.ts)\)/g)].map(([, path = '']) => join('test/attacks', path));
  const tagged = globSync('test/**/*.test.ts', { cwd: root }).filter((path) => hasAttacks(read(path)));
  expect(tagged.length).toBeGreaterThan(30);
  expect([...new Set(named)].toSorted()).toEqual(tagged.toSorted());
});

function hasAttacks(source: string): boolean {
  return source.startsWith(`// @module-tag ${ATTACK}\n`) || /\btags: \[ATTACK\b/.test(source);
}
