import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { readText } from './kit.ts';

const root = join(import.meta.dirname, '..', '..');
/** Types are taken away unread. */
const IMPORT = /^(?:import|export)(?! type\b)[^;]*? from '(\.[^']+)'/gms;

/** What the build of the dashboard imports, from the files that it begins with. */
function filesOfBuild(): string[] {
  const found = new Set(['scripts/build-web.ts']);
  for (const path of readdirSync(join(root, 'web', 'src'), { recursive: true, encoding: 'utf8' }))
    if (/\.tsx?$/.test(path)) found.add(join('web', 'src', path));
  for (const path of found) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, named = ''] of text.matchAll(IMPORT))
      if (/\.tsx?$/.test(named)) found.add(relative(root, join(root, dirname(path), named)));
  }
  return [...found];
}

test('the Dockerfile has every file that its build imports, and the builder is sent it', () => {
  const isBelow = (paths: readonly string[]) => (file: string) =>
    paths.some((path) => file === path || file.startsWith(`${path}/`));
  const copied = [...readText('Dockerfile').matchAll(/^COPY (?!--)(.+) \S+$/gm)].flatMap(([, words = '']) =>
    words.split(' '),
  );
  const sent = [...readText('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path = '']) => path);
  const files = filesOfBuild();
  expect(files.length).toBeGreaterThan(150);
  expect(files.filter((file) => !isBelow(copied)(file))).toEqual([]);
  expect(files.filter((file) => !isBelow(sent)(file))).toEqual([]);
});
