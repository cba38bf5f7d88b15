import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ATTACK } from '../support/runner/attack.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

test('test/attacks/README.md names every file of attacks, and no other', () => {
  const [, section = ''] = read('test/attacks/README.md').split('\n## What was tried\n');
  const named = [...section.matchAll(/\]\(([^)]+\.test\.ts)\)/g)].map(([, path = '']) =>
    join('test/attacks', path),
  );
  const tagged = globSync('test/**/*.test.ts', { cwd: root }).filter((path) => hasAttacks(read(path)));
  expect(tagged.length).toBeGreaterThan(30);
  expect([...new Set(named)].toSorted()).toEqual(tagged.toSorted());
});

function hasAttacks(source: string): boolean {
  return source.startsWith(`// @module-tag ${ATTACK}\n`) || /\btags: \[ATTACK\b/.test(source);
}
