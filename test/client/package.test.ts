// @module-tag long
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startApi } from '../api/api.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const PACKED = /^dist\/(generated\/|receiver\/|worker\/)?[\w.-]+\.(js|d\.ts)$|^(package\.json|README\.md|LICENSE)$/;

test('the packed package is installed without a network; a program that uses it is right, and runs', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-package-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const api = await startApi();
  onTestFinished(() => api.stop());
  const npm = async (folder: string, ...words: string[]) => (await run('npm', words, { cwd: folder })).stdout;

  const packed = await npm(join(root, 'clients', 'typescript'), 'pack', '--json', '--pack-destination', directory);
  const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf('['))) as [Packed];
  expect(files.map(({ path }) => path).filter((path) => !PACKED.test(path))).toEqual([]);
  expect(files.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['LICENSE', 'README.md', 'dist/index.d.ts', 'dist/receiver/index.js']),
  );
  await npm(directory, 'install', '--offline', '--no-audit', '--no-fund', join(directory, filename));
  const installed = join(directory, 'node_modules', 'firelock-client', 'package.json');
  expect(JSON.parse(await readFile(installed, 'utf8'))).not.toHaveProperty('dependencies');

  await cp(join(import.meta.dirname, 'fixtures', 'program.ts'), join(directory, 'program.mts'));
  const options = '--strict --exactOptionalPropertyTypes --module nodenext --target es2023 --types node --outDir out';
  const types = ['--typeRoots', join(root, 'node_modules', '@types')];
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const checked = run(process.execPath, [tsc, ...options.split(' '), ...types, 'program.mts'], {
    cwd: directory,
  });
  expect(await checked.catch((error: unknown) => error)).toMatchObject({ stdout: '' });

  const env = { PATH: process.env['PATH'], FIRELOCK_URL: api.url };
  const { stdout } = await run(process.execPath, [join(directory, 'out', 'program.mjs')], { env });
  expect(JSON.parse(stdout)).toEqual({
    kept: true,
    before: '{"cents":123456789012345678901.50}',
    found: true,
    faults: ['/crn'],
    worked: '{"worked":true}',
    handlers: ['function', 'function', 'function', 'function'],
  });
});

interface Packed {
  filename: string;
  files: { path: string }[];
}
