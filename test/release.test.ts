import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ATTACK } from './support/runner/attack.ts';

const root = join(import.meta.dirname, '..');
const text = readFileSync(join(root, '.github', 'workflows', 'release.yml'), 'utf8');
const workflow = parse(text) as Workflow;
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);
const scripts = steps.flatMap(({ run }) => run ?? []).join('\n');

describe('the workflow of a release', () => {
  test('takes every action by its commit, and says which version that is', { tags: [ATTACK] }, () => {
    const used = text.split('\n').filter((line) => line.includes('uses:'));
    expect(used.length).toBeGreaterThan(4);
    for (const line of used) expect(line).toMatch(/uses: actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test(
    'gives no right to the job that runs code of packages, and puts no expression into a script',
    { tags: [ATTACK] },
    () => {
      expect(workflow.permissions).toEqual({});
      for (const { permissions, steps: own } of Object.values(workflow.jobs)) {
        const runsPackages = own.some(({ run }) => /npm (?:ci|run|install)\b/.test(run ?? ''));
        if (runsPackages) expect(permissions).toEqual({ contents: 'read' });
      }
      expect(scripts).not.toContain('${{');
      for (const { uses, with: given } of steps)
        if (uses?.includes('/checkout@')) expect(given?.['persist-credentials']).toBe(false);
    },
  );

  test('calls only scripts that package.json has', () => {
    const { scripts: known } = read('package.json') as { scripts: Record<string, string> };
    const called = [...scripts.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
    expect(called).toEqual(['release', 'release:check']);
    for (const name of called) expect(known).toHaveProperty([name]);
  });
});

test('what a release publishes has one version, and the pages that package.json lists are there', () => {
  const { version, files, private: isPrivate } = read('package.json');
  const chart = read('deploy/helm/firelock/Chart.yaml');
  expect([read('client/package.json')['version'], chart['version'], chart['appVersion']]).toEqual(
    Array(3).fill(version),
  );
  expect(isPrivate).toBeUndefined();
  for (const page of (files as string[]).filter((file) => file.endsWith('.md')))
    expect(existsSync(join(root, page)), page).toBe(true);
});

/** JSON is YAML. */
function read(path: string): Record<string, unknown> {
  return parse(readFileSync(join(root, path), 'utf8')) as Record<string, unknown>;
}

interface Workflow {
  permissions: object;
  jobs: Record<
    string,
    {
      permissions: object;
      steps: { uses?: string; run?: string; with?: Record<string, unknown> }[];
    }
  >;
}
