import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freePort, serveHttp } from '../../support/loopback.ts';
import { until } from '../../support/until.ts';
import { newToken } from '../../api/access/support.ts';
import { sharedApi } from '../../api/api.ts';
import { firelock } from '../cli.ts';

const ADMIN = newToken('move', 'admin');
const VIEWER = newToken('looks', 'viewer');
const api = sharedApi({ apiTokens: [ADMIN.known, VIEWER.known] });
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firelock-reporting-'));
});
afterAll(() => rm(folder, { recursive: true }));

let made = 0;
/** What `import-crontab --observe --crontab-out` makes of a crontab. */
async function reporting(crontab: string | Buffer, args: string[] = [], env: Record<string, string> = {}) {
  const path = join(folder, `crontab-${(made += 1)}`);
  const { code, out, err } = await firelock(['import-crontab - --observe --crontab-out', path, ...args], {
    input: crontab,
    env: { FIRELOCK_URL: api.url, FIRELOCK_TOKEN: ADMIN.secret, ...env },
  });
  const bytes = await readFile(path).catch(() => null);
  const read = parse(out === '' ? '{}' : out) as { schedules?: { id: string; [field: string]: unknown }[] };
  return { path, code, out, err, bytes, schedules: read.schedules ?? [] };
}

const REPORTER = /_fl_id=.*?_fl start; /gs;
const get = async (path: string) => (await api.call('GET', `/api/v1/${path}`, undefined, ADMIN.headers)).body;

test('schedules that observe wait for a report less long than it is to the next moment, and an hour at most', async () => {
  const crontab = [
    '* * * * * a',
    '*/7 * * * * b',
    '0 * * * * c',
    '@daily d',
    'RANDOM_DELAY=30',
    '@weekly e',
    '0 12 29 2 * f',
  ].join('\n');
  const { code, out, err } = await firelock('import-crontab - --observe', { input: crontab });
  const { schedules } = parse(out) as { schedules: Record<string, unknown>[] };
  expect(code).toBe(0);
  expect(schedules.map((one) => one['completionTimeoutSeconds'])).toEqual([
    50,
    200,
    3000,
    3600,
    3600 + 30 * 60,
    3600 + 30 * 60,
  ]);
  for (const one of schedules) {
    expect(one).toMatchObject({ observe: { until: null }, timezone: 'UTC', target: { type: 'pull' } });
    expect(one).not.toHaveProperty('jitterSeconds');
  }
  expect(err).toMatch(/^before observe\.until, start a worker .*: firelock work crontab\n/);
  expect(err.match(/^-:[67]: RANDOM_DELAY: no jitterSeconds/gm)).toHaveLength(2);
  const applied = await firelock('plan - --no-json', {
    ...{ url: api.url, input: out, env: { FIRELOCK_TOKEN: ADMIN.secret } },
  });
  expect([applied.code, applied.out]).toEqual([2, expect.stringContaining('6 to create')]);
});

test('the crontab is the same but for what reports, has the key of each schedule, and is for its owner only', async () => {
  const crontab = Buffer.from(
    [
      '# gr\xfc\xdfe',
      'MAILTO="me@example.com"',
      '',
      '  0 2 * * *\troot  tidy \xfc --all   # nightly',
      '*/5 * * * * www-data cd /tmp && read a; echo "$a 5\\%"%in%put\r',
      '@reboot root start',
      '@daily root TZ=UTC report',
    ].join('\n'),
    'latin1',
  );
  const made = await reporting(crontab, ['--system', '--encoding', 'latin1', '--set', 'old']);
  expect(made.code).toBe(1);
  const after = made.bytes?.toString('latin1') ?? '';
  expect(after.replace(REPORTER, '')).toBe(crontab.toString('latin1'));
  expect(after.match(REPORTER)).toHaveLength(3);
  expect((await stat(made.path)).mode & 0o777).toBe(0o600);
  const keys = await Promise.all(made.schedules.map(async ({ id }) => (await get(`schedules/${id}`))['pingKey']));
  expect([...after.matchAll(/"(\S+)\/ping\/(.{22})\/\$1/g)].map(([, url, key]) => [url, key])).toEqual(
    keys.map((key) => [api.url, key]),
  );
  expect(made.err).toMatch(/^-:6: not carried over: @reboot/m);
  expect(made.err).toMatch(/^applied; lines of .* that report to .*: 3;/m);
  expect(await readdir(folder)).not.toContainEqual(expect.stringContaining('draft'));

  const again = await reporting(made.bytes ?? '', ['--system', '--encoding', 'latin1']);
  expect(again.err.match(/it reports to firelock: import the crontab that this one/g)).toHaveLength(3);
  expect(again.bytes).toEqual(made.bytes);
});

/** Runs a line of a crontab as cron does. */
async function ran(line: string, shell: string) {
  const [, source = ''] = /^(?:\S+\s+){5}(.*)$/s.exec(line) ?? [];
  const [command = '', ...input] = source.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'));
  const env = { SHELL: shell, HOME: folder, LOGNAME: 'me', PATH: '/usr/bin:/bin' };
  const child = spawn(shell, ['-c', command], { cwd: folder, env });
  // It may have ended before it reads.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input.length === 0 ? '' : `${input.join('\n')}\n`);
  const [out, err, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, string | null]>,
  ]);
  return { code: signal ?? code, out, err };
}

const COMMANDS = [
  'echo out; echo err >&2',
  'false',
  'exit 7 # with a comment',
  'read a; read b; echo "$b $a 100\\%"; exit 3%one%two',
  'cd / && pwd; cd nowhere',
  'set -eu; (exit 5); echo not here',
  'sleep 0 & wait; echo "waited for $!" | sed "s/ [0-9]*$//"; (exit 9) || exit 4',
  'X=1 sh -c \'exit "$X"\'',
  'exec 2>/dev/null; echo hidden >&2; echo seen',
  'echo "$(exit 6)"; f() { return 8; }; f',
  'kill -9 $$',
];

test.each(['/bin/sh', '/bin/bash'])(
  'with %s, each job prints, reads and ends as it did, and its exit code is reported',
  async (shell) => {
    // The ids are those of the commands.
    const before = COMMANDS.map((command) => `* * * * * : ${shell}; ${command}`);
    const { bytes, schedules, code } = await reporting([`SHELL=${shell}`, ...before].join('\n'));
    expect([code, schedules.length]).toEqual([0, before.length]);
    const [, ...after] = bytes?.toString().split('\n') ?? [];
    for (const [index, line] of before.entries()) {
      const plain = await ran(line, shell);
      expect(await ran(after[index] ?? '', shell)).toEqual(plain);
      const path = `schedules/${schedules[index]?.id ?? ''}/runs`;
      const run = await until(async () => {
        const [one] = (await get(path))['items'] as unknown as { status: string; error: object }[];
        return one === undefined || (one.status === 'running' && plain.code !== 'SIGKILL') ? null : one;
      });
      const failed = {
        ...{ status: 'failed', error: { message: `the job ended with exit code ${plain.code ?? ''}` } },
      };
      const [status] = plain.code === 'SIGKILL' ? ['running'] : ['succeeded'];
      expect(run).toMatchObject(Number(plain.code) > 0 ? failed : { status });
    }
  },
);

test('a job that runs is known to have begun, and both reports are of one execution', async () => {
  const gate = join(folder, 'gate');
  const line = `* * * * * until [ -e ${gate} ]; do sleep 0.05; done; exit 2`;
  const { bytes, schedules } = await reporting(line);
  const running = ran(bytes?.toString() ?? '', '/bin/sh');
  const run = async () => (await get(`schedules/${schedules[0]?.id ?? ''}/runs`))['items'] as unknown as object[];
  await until(async () => ((await run()).length > 0 ? true : null));
  const [begun] = await run();
  expect(begun).toMatchObject({
    ...{ status: 'running', observed: true },
    executionId: expect.stringMatching(/^[\da-f-]{36}$/) as string,
  });
  await writeFile(gate, '');
  expect(await running).toMatchObject({ code: 2 });
  await until(async () => ((await run())[0] as { status: string }).status === 'failed' || null);
  expect(await run()).toHaveLength(1);
});

test('neither a firelock that is away nor one that never answers delays a job or makes it fail', async () => {
  const held: (() => void)[] = [];
  const silent = await serveHttp((_request, response) => void held.push(() => response.end()));
  onTestFinished(() => silent.close());
  const { bytes } = await reporting('* * * * * echo done; exit 4');
  const line = bytes?.toString() ?? '';
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  for (const server of [silent.url, nowhere])
    expect(await ran(line.replaceAll(api.url, server), '/bin/sh')).toEqual({
      ...{ code: 4, out: 'done\n', err: '' },
    });
  // It had ended while both of its calls waited.
  await until(() => (held.length === 2 ? true : null));
});

test('a line whose job could not report is left as it is, named, and not watched', async () => {
  const script = `/usr/local/bin/${'x'.repeat(800)}`;
  const crontab = [
    `@daily ${script}`,
    '@daily cd /srv && exec ./run',
    "@daily trap 'rm x' EXIT; touch x",
    '@daily echo "exec a; trap b" && exec 3>&1',
    'SHELL=/bin/csh',
    '@daily set x = 1',
  ].join('\n');
  const { code, err, bytes, out, schedules } = await reporting(crontab);
  expect([code, schedules.length]).toEqual([1, 1]);
  expect(err).toMatch(/^-:1: not carried over: with what reports, its command would have \d+ bytes; Debian/m);
  expect(err).toMatch(/^-:2: not carried over: its exec takes the place of the shell/m);
  expect(err).toMatch(/^-:3: not carried over: its trap would take the place/m);
  expect(err).toMatch(/^-:6: not carried over: .* SHELL is \/bin\/csh/m);
  expect(out).toContain('  # line 6: not carried over: ');
  const lines = bytes?.toString().split('\n') ?? [];
  expect(lines.map((line) => line.replace(REPORTER, ''))).toEqual(crontab.split('\n'));
  expect(lines.map((line) => line.includes('/ping/'))).toEqual([false, false, false, true, false, false]);
});

test('a command may have 998 bytes with what reports, as Debian’s cron takes, and no more', async () => {
  const { bytes } = await reporting('@daily x');
  const left = 998 - ((bytes?.length ?? 0) - '@daily '.length - 1);
  const [fits, not] = await Promise.all([left, left + 1].map((count) => reporting(`@daily ${'y'.repeat(count)}\n`)));
  expect([fits?.code, fits?.bytes?.length]).toEqual([0, '@daily '.length + 998 + 1]);
  expect([not?.code, not?.err]).toEqual([1, expect.stringContaining('would have 999 bytes')]);
});

test('all that is missing is named at once, and then nothing is applied or written', async () => {
  const path = join(folder, 'there');
  await writeFile(path, 'mine');
  const nothing = await firelock(['import-crontab - --crontab-out', path], { input: '@daily lone' });
  expect([nothing.code, nothing.out, nothing.err.split('\n')]).toEqual([
    64,
    '',
    [
      'firelock: --crontab-out: it needs --observe: cron goes on running the jobs',
      '--crontab-out: FIRELOCK_URL is not set: there the jobs report',
      '--crontab-out: FIRELOCK_TOKEN is not set: only operators and admins see by which address a job reports',
      `--crontab-out: ${path} is there already, and is not overwritten`,
      '',
    ],
  ]);
  const refused = [
    await reporting('@daily lone', [], { FIRELOCK_TOKEN: '' }),
    await reporting('kind: CronJob\n'),
    await reporting('@daily lone', ['--crontab-out', join(folder, 'no', 'such', 'folder')]),
    await reporting('@daily lone', [], { FIRELOCK_TOKEN: VIEWER.secret }),
  ];
  expect(refused.map(({ code, bytes }) => [code, bytes])).toEqual([64, 64, 1, 1].map((code) => [code, null]));
  expect(refused[0]?.err).toBe(
    'firelock: --crontab-out: FIRELOCK_TOKEN is not set: only operators and admins see by which address a job reports\n',
  );
  expect(refused[2]?.err).toMatch(/cannot write .*: ENOENT/);
  expect(JSON.stringify(await get('schedules'))).not.toContain('lone-');
  expect((await readFile(path)).toString()).toBe('mine');
});

test('jobs that firelock runs, or will, are not given back unasked', async () => {
  const { schedules } = await reporting('@daily mine\n@daily other');
  const id = schedules[0]?.id ?? '';
  const observe = { until: '2090-01-01T00:00:00Z' };
  await api.call('PATCH', `/api/v1/schedules/${id}`, { observe }, ADMIN.headers);
  const again = await reporting('@daily mine\n@daily other\n@daily third');
  expect([again.code, again.bytes]).toEqual([1, null]);
  expect(again.err).toContain(`nothing was applied: firelock runs ${id}, or will; `);
  expect(await get(`schedules/${id}`)).toMatchObject({ observe: { until: '2090-01-01T00:00:00.000Z' } });
  expect(JSON.stringify(await get('schedules'))).not.toContain('third-');
});
