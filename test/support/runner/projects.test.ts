import { globSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { expect, it } from 'vitest';
import { projectsOf } from './projects.ts';

const ROOT = join(import.meta.dirname, '../../..');

it('every test file is in one of two projects: that of an older PostgreSQL has the folders where the database decides', () => {
  const [usual, older] = (projectsOf('14').projects ?? []).map((project) => {
    const { exclude = [] } = (project as { test: { exclude?: string[] } }).test;
    return (file: string) => !exclude.some((pattern) => matchesGlob(file, pattern));
  });
  const files = globSync('test/**/*.test.ts', { cwd: ROOT });
  expect(files.filter((file) => usual?.(file) === older?.(file))).toEqual([]);
  const folders = new Set(files.filter((file) => older?.(file)).map((file) => file.split('/')[1]));
  expect([...folders].sort()).toEqual(['flow', 'history', 'operations', 'postgres', 'queues', 'recovery', 'store']);
});

it('without a version there are none', () => {
  expect([projectsOf(undefined), projectsOf('')]).toEqual([{}, {}]);
});
