import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { baseImage } from '../scripts/support/base-image.ts';
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

describe('the base of the image', () => {
  const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

  test('is looked up once, and by its digest the release, its notes and every stage of the image name it', () => {
    expect(scripts.match(/imagetools inspect/g)).toHaveLength(1);
    const folder = mkdtempSync(join(tmpdir(), 'firelock-release-'));
    try {
      copyFileSync(join(root, 'Dockerfile'), join(folder, 'Dockerfile'));
      // Both say what they were asked for; the one looks a digest up.
      stub(folder, 'docker', `case "$*" in *inspect*) echo ${digest} ;; esac`);
      stub(folder, 'gh', '');
      runStep(folder, 'Look up the base of the image');
      expect(readFileSync(join(folder, 'variables'), 'utf8')).toBe(`BASE_DIGEST=${digest}\n`);

      const base = baseImage(digest);
      mkdirSync(join(folder, 'release'));
      writeFileSync(join(folder, 'release', 'firelock-1.2.3.base-image.txt'), `${base}\n`);
      const built = runStep(folder, 'Build and push the image');
      expect(built).toContain(`--build-context\n${baseImage()}=docker-image://${base}\n`);
      expect(built).toContain(`org.opencontainers.image.base.name=${baseImage()}\n`);
      expect(built).toContain(`org.opencontainers.image.base.digest=${digest}\n`);
      expect(runStep(folder, 'Make the release')).toContain(`The image is built on ${base}.`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('is all that the stages of the Dockerfile begin with', () => {
    const from = readFileSync(join(root, 'Dockerfile'), 'utf8').match(/^FROM \S+/gm);
    expect(new Set(from)).toEqual(new Set(['FROM node:${NODE_VERSION}-slim']));
  });

  test('is named by nothing but a digest', () => {
    expect(() => baseImage('24-slim')).toThrow('the digest of the base image');
  });
});

test('what a release publishes has one version, and the pages that package.json lists are there', () => {
  const { version, files, private: isPrivate } = read('package.json');
  const chart = read('deploy/helm/firelock/Chart.yaml');
  const client = read('clients/typescript/package.json');
  expect([client['version'], chart['version'], chart['appVersion']]).toEqual(Array(3).fill(version));
  const python = readFileSync(join(root, 'clients', 'python', 'pyproject.toml'), 'utf8');
  expect(python).toContain(`version = "${String(version)}"`);
  expect(isPrivate).toBeUndefined();
  for (const page of (files as string[]).filter((file) => file.endsWith('.md')))
    expect(existsSync(join(root, page)), page).toBe(true);
});

/** A program of this name, which writes down its words, one a line. */
function stub(folder: string, name: string, more: string): void {
  const text = `#!/bin/bash\nprintf '%s\\n' "$@" >>"${join(folder, 'called')}"\n${more}\n`;
  writeFileSync(join(folder, name), text, { mode: 0o755 });
}

/** Runs the script of a step as GitHub's runner does; answers with which words it called the stubs. */
function runStep(folder: string, name: string): string {
  const script = steps.find((step) => step.name === name)?.run;
  if (script === undefined) throw new Error(`there is no step "${name}"`);
  const called = join(folder, 'called');
  writeFileSync(called, '');
  const variables = {
    GITHUB_ENV: join(folder, 'variables'),
    ...{
      GITHUB_REF_NAME: 'v1.2.3',
      GITHUB_REPOSITORY: 'Some/One',
      GITHUB_SERVER_URL: 'https://forge.example.org',
    },
    REGISTRY: 'registry.example.org',
  };
  const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, ...variables };
  execFileSync('bash', ['-e', '-o', 'pipefail', '-c', script], { cwd: folder, env });
  return readFileSync(called, 'utf8');
}

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
      steps: { name?: string; uses?: string; run?: string; with?: Record<string, unknown> }[];
    }
  >;
}
