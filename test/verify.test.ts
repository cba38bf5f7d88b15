import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { countsOf, failuresOf, tableOf } from '../scripts/verify/report.ts';
import { COUNTS, type Outcome, type Step, runSteps } from '../scripts/verify/run-steps.ts';
import { ALL_STEPS, CI_STEPS } from '../scripts/verify/steps.ts';

const root = join(import.meta.dirname, '..');

describe('of the steps of a verification', () => {
  test('one that passes is counted by its report, whether a script or vitest wrote it', async () => {
    const { outcomes } = await run([
      writing('a script', '{"passed": 3, "failed": 0}'),
      writing('vitest', '{"numPassedTests": 5, "numFailedTests": 0}'),
      step('no report', ''),
    ]);
    expect(outcomes.map(({ result, passed, failed }) => [result, passed, failed])).toEqual([
      ['passed', 3, 0],
      ['passed', 5, 0],
      ['passed', 0, 0],
    ]);
  });

  test('one that fails, counts a failure, writes no count or cannot be started has failed, and the next one runs', async () => {
    const { outcomes } = await run([
      step('status', 'console.log("this is why"); process.exitCode = 3'),
      writing('a failure', '{"passed": 3, "failed": 2}'),
      writing('a failed file', '{"numPassedTests": 5, "numFailedTests": 0}', 'process.exitCode = 1'),
      { ...step('no count', ''), counts: true },
      { name: 'no program', command: ['/nowhere/to/be/found'] },
      step('the next', ''),
    ]);
    expect(outcomes.map(({ result, passed, failed }) => [result, passed, failed])).toEqual([
      ['failed', 0, 1],
      ['failed', 3, 2],
      ['failed', 5, 1],
      ['failed', 0, 1],
      ['failed', 0, 1],
      ['passed', 0, 0],
    ]);
    expect(countsOf(outcomes, false)).toEqual({ passed: 8, failed: 6 });
    expect(failuresOf(outcomes)).toContain('== failed: status\nthis is why');
    expect(failuresOf(outcomes)).toContain('ENOENT');
  });

  test('one that lacks what it needs is skipped with its own words, but not where all is said to be there', async () => {
    const steps = [
      { ...step('spec', 'console.error("no spin here"); process.exitCode = 2'), needs: 'spin' },
      { ...step('image', 'console.log("SKIP image:check: no podman"); console.log("bye")'), needs: 'podman' },
      // Of what needs nothing, it is a failure as any other.
      step('status 2', 'process.exit(2)'),
    ];
    const { outcomes } = await run(steps);
    expect(outcomes.map(({ result, why }) => [result, why])).toEqual([
      ['skipped', 'no spin here'],
      ['skipped', 'no podman'],
      ['failed', ''],
    ]);
    const all = await run(steps, { nothingMayLack: true });
    expect(all.outcomes.map(({ result }) => result)).toEqual(['failed', 'failed', 'failed']);
  });

  test('one that stands on another is skipped if that did not pass', async () => {
    const { outcomes } = await run([
      step('build', 'process.exit(1)'),
      { ...step('smoke', ''), after: ['build'] },
      { ...step('alone', ''), after: ['not run'] },
    ]);
    expect(outcomes.map(({ result, why }) => [result, why.trim()])).toEqual([
      ['failed', ''],
      ['skipped', 'build did not pass'],
      ['passed', ''],
    ]);
  });

  test('what one writes is shown as it comes, with its command, and of a long output what failed is said once more', async () => {
    const noise = 'for (let n = 0; n < 500; n++) console.log("ok     " + n);';
    const script = `${noise} console.log("\\x1b[31m FAILED \\x1b[39mthis one\\n  because of that"); ${noise} process.exitCode = 1`;
    const { outcomes, said } = await run([step('long', script)]);
    expect(said).toMatch(/^\n== .*node.* -e /);
    expect(said).toContain('because of that');
    expect(said).toMatch(/== failed after \d+ s\n$/);
    const why = outcomes[0]?.why.split('\n') ?? [];
    expect(why.slice(0, 2)).toEqual([' FAILED this one', '  because of that']);
    expect(why).toHaveLength(15);
  });

  test('the one under way ends when the run is interrupted, and no other begins', async () => {
    const interruption = new AbortController();
    const { outcomes } = await run(
      [step('endless', 'console.log("here"); setInterval(() => {}, 1000)'), step('the next', '')],
      { signal: interruption.signal, heard: (text) => text.includes('here\n') && interruption.abort() },
    );
    expect(outcomes.map(({ name, result }) => [name, result])).toEqual([['endless', 'failed']]);
    expect(countsOf(outcomes, true).failed).toBe(2);
  });

  test('a table has the seconds of each and of all', () => {
    const outcome: Outcome = { name: 'check', seconds: 41, result: 'passed', passed: 0, failed: 0, why: '' };
    const image: Outcome = {
      ...outcome,
      name: 'image:check',
      seconds: 2,
      result: 'skipped',
      why: 'no podman',
    };
    expect(tableOf([outcome, image])).toBe(
      [
        'Seconds of each step:',
        '    41  passed   check',
        '     2  skipped  image:check: no podman',
        '    43  in all',
      ].join('\n'),
    );
  });
});

/** What makes, measures or starts something, and decides nothing. What is a part of a step is named beside that. */
const NO_CHECKS = [
  ...['prestart', 'start', 'predemo', 'demo', 'build', 'build:web', 'build:client', 'prepack', 'prepare'],
  ...['format', 'openapi', 'client', 'migration', 'schema', 'reference'],
  ...['bench', 'bench:scaling', 'bench:profile', 'bench:logs', 'bench:scopes'],
  ...['capacity', 'takeover', 'outage', 'measured', 'verify:all'],
];
const PARTS = /^(check:|attacks$)/;

describe('the lists of steps', () => {
  const scripts = Object.keys(packageJson.scripts);
  const scriptsOf = (steps: readonly Step[]) =>
    steps.flatMap(({ command }) => (command[0] === 'npm' ? command[3] : []));

  test('verify:all runs every script of package.json that checks something', () => {
    const run = new Set(scriptsOf(ALL_STEPS));
    const others = scripts.filter((name) => !PARTS.test(name) && !run.has(name));
    expect(others.sort()).toEqual(NO_CHECKS.toSorted());
  });

  test('call only scripts that package.json has, each step by a name of its own', () => {
    for (const steps of [CI_STEPS, ALL_STEPS]) {
      expect(scriptsOf(steps).filter((name = '') => !scripts.includes(name))).toEqual([]);
      expect(new Set(steps.map(({ name }) => name)).size).toBe(steps.length);
    }
  });

  test('what CI does, verify:all does too', () => {
    const all = ALL_STEPS.map(({ name }) => name);
    expect(CI_STEPS.map(({ name }) => name).filter((name) => !all.includes(name))).toEqual([]);
  });

  test('what stands on another comes after it', () => {
    for (const steps of [CI_STEPS, ALL_STEPS])
      for (const [index, { after = [] }] of steps.entries())
        for (const name of after) expect(steps.slice(0, index).map((one) => one.name)).toContain(name);
  });
});

describe('.ci/run', () => {
  const lines = (...given: Parameters<typeof runCi>) =>
    runCi(...given)
      .stdout.trim()
      .split('\n');

  test('installs, and hands what it has done over to the steps', () => {
    const { stdout, status } = runCi({ npm: 'exit 0', dpkg: 'echo ok installed' });
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^node scripts\/verify\/main\.ts --ci --before=\d+ 0 system_packages --before=\d+ 0 npm ci$/m,
    );
  });

  test('a system package that cannot be installed has failed, and the rest is done', () => {
    expect(lines({ npm: 'exit 0', dpkg: 'exit 1' }).at(-1)).toMatch(/--before=\d+ 100 system_packages .* 0 npm ci$/);
  });

  test('where npm ci fails, nothing else is done, and the last line says that it failed', () => {
    const { status } = runCi({ npm: 'exit 7', dpkg: 'echo ok installed' });
    expect(status).toBe(1);
    expect(lines({ npm: 'exit 7', dpkg: 'echo ok installed' }).at(-1)).toBe('0 passed, 1 failed');
    expect(lines({ npm: 'exit 7', dpkg: 'exit 1' }).at(-1)).toBe('0 passed, 2 failed');
  });
});

interface Ran {
  outcomes: Outcome[];
  said: string;
}

async function run(
  steps: readonly Step[],
  { nothingMayLack = false, signal = new AbortController().signal, heard = (text: string): unknown => text } = {},
): Promise<Ran> {
  let said = '';
  const say = (text: string) => {
    said += text;
    heard(text);
  };
  return { outcomes: await runSteps(steps, { nothingMayLack, say, signal }), said };
}

function step(name: string, script: string): Step {
  return { name, command: [process.execPath, '-e', script] };
}

/** One that writes this into the file of its counts. */
function writing(name: string, report: string, more = ''): Step {
  const script = `require('node:fs').writeFileSync(process.argv[1], ${JSON.stringify(report)}); ${more}`;
  return { name, command: [process.execPath, '-e', script, COUNTS], counts: true };
}

/** A copy of it, with programs in place of those that install. */
function runCi({ npm, dpkg }: { npm: string; dpkg: string }): { stdout: string; status: number | null } {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-ci-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['.ci', 'bin', 'node_modules/.bin']) mkdirSync(join(folder, name), { recursive: true });
  copyFileSync(join(root, '.ci', 'run'), join(folder, '.ci', 'run'));
  const stub = (path: string, text: string) => {
    writeFileSync(join(folder, path), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  };
  stub('bin/npm', npm);
  stub('bin/dpkg-query', dpkg);
  stub('bin/sudo', 'shift; exec "$@"');
  stub('bin/apt-get', 'exit 100');
  stub('node_modules/.bin/node', 'echo node "$@"');
  const env = { PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` };
  return spawnSync('bash', [join(folder, '.ci', 'run')], { env, encoding: 'utf8' });
}
