// @module-tag long
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sharedApi } from '../../api/api.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { until } from '../../support/until.ts';
import { firelock } from '../cli.ts';
import { workHere } from './workers.ts';

const api = sharedApi();

test('an imported crontab runs: commands with their environment and input, and what they printed', async () => {
  const crontab = [
    'GREETING="good morning"',
    '0 0 29 2 * read line; echo "$GREETING, $line 100\\%"%first%second',
    '0 0 29 2 * echo broken >&2; exit 3',
  ].join('\n');
  const file = await firelock('import-crontab -', { input: crontab });
  expect((await firelock('apply -', { url: api.url, input: file.out })).code).toBe(2);
  const { body } = await api.call('GET', '/api/v1/schedules');
  const ids = (body['items'] as unknown as { id: string }[]).map(({ id }) => id);

  workHere(api, ['crontab'], '');
  const ends = await Promise.all(
    ids.map(async (id) => {
      const fired = await api.call('POST', `/api/v1/schedules/${id}/fire`);
      return endOf((fired.body as unknown as { id: string }).id);
    }),
  );
  const [failed, succeeded] = ends.sort((a, b) => (a.status < b.status ? -1 : 1));
  expect(succeeded?.status).toBe('succeeded');
  expect(succeeded?.result.body).toBe('good morning, first 100%\n');
  expect(failed).toMatchObject({
    status: 'failed',
    ...{ error: { kind: 'reported', message: 'exit code 3' }, result: { body: 'broken\n' } },
  });
});

const isRoot = process.getuid?.() === 0;

test('a home that is not there is no reason to fail, and an unknown user is named', async () => {
  const lines = ['HOME=/nowhere/at/all', '0 0 29 2 * pwd'];
  const users = ['0 0 29 2 * nobody-here id'];
  const ends = await endsOf([lines.join('\n'), ...(isRoot ? [[users.join('\n'), '--system']] : [])]);
  expect(ends[0]?.result.body).toBe('/\n');
  if (isRoot)
    expect(ends[1]).toMatchObject({
      status: 'failed',
      error: { message: expect.stringMatching(/^there is no user nobody-here on /) as string },
    });
});

test('a command of another user has all groups of that user', async (context) => {
  const named = isRoot ? accountWithGroups() : null;
  if (named === null) return context.skip('needs root, setpriv and an account with more than one group');
  const [end] = await endsOf([
    [`0 0 29 2 * ${named.user} id -un; id -G; cat /dev/stdin; echo x >/dev/stderr%y`, '--system'],
  ]);
  expect(end?.result.body).toBe(`${named.user}\n${named.groups}\ny\nx\n`);
});

test(
  "what makes a command another user's is not looked for where the crontab says, and the command gets its variables as they are",
  { tags: [ATTACK] },
  async (context) => {
    const named = isRoot ? accountWithGroups() : null;
    if (named === null) return context.skip('needs root, setpriv and an account with more than one group');
    const folder = await mkdtemp(join(tmpdir(), 'firelock-path-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    for (const name of ['setpriv', 'sh', 'cat'])
      await writeFile(join(folder, name), `#!/bin/sh\nid -un >> ${folder}/ran\n`, { mode: 0o755 });
    await chmod(folder, 0o777);
    const lines = [
      `PATH=${folder}:/usr/bin:/bin`,
      `GREETING="it's $HOME"`,
      `LD_PRELOAD=${folder}/none.so`,
      `0 0 29 2 * ${named.user} id -un; echo "$GREETING $PATH"`,
    ];
    const [end] = await endsOf([[lines.join('\n'), '--system']]);
    expect(end?.status).toBe('succeeded');
    expect(end?.result.body).toContain(`${named.user}\n`);
    expect(end?.result.body).toContain(`it's $HOME ${folder}:/usr/bin:/bin\n`);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  },
);

function accountWithGroups(): { user: string; groups: string } | null {
  const said = (program: string, ...args: string[]) => {
    const { error, stdout } = spawnSync(program, args, { encoding: 'utf8' });
    return error ? '' : stdout;
  };
  if (said('setpriv', '--version') === '') return null;
  const users = said('getent', 'passwd')
    .split('\n')
    .map((line) => line.split(':')[0] ?? '');
  for (const user of users.filter((one) => one !== '' && one !== 'root')) {
    const groups = said('id', '-G', user).trim();
    if (groups.includes(' ')) return { user, groups };
  }
  return null;
}

/** What becomes of one schedule of each of these crontabs: texts, or texts with options. */
async function endsOf(crontabs: readonly (string | readonly string[])[]): Promise<End[]> {
  workHere(api, ['crontab'], '');
  const ends: End[] = [];
  for (const crontab of crontabs) {
    const [text = '', ...options] = typeof crontab === 'string' ? [crontab] : crontab;
    const file = await firelock(['import-crontab -', ...options], { input: text });
    await firelock('apply -', { url: api.url, input: file.out });
    const [, id = ''] = /^ {2}- id: (\S+)$/m.exec(file.out) ?? [];
    const { body } = await api.call('POST', `/api/v1/schedules/${id}/fire`);
    ends.push(await endOf((body as unknown as { id: string }).id));
  }
  return ends;
}

function endOf(runId: string): Promise<End> {
  return until(async () => {
    const run = (await api.call('GET', `/api/v1/runs/${runId}`)).body as unknown as End;
    return ['succeeded', 'failed'].includes(run.status) ? run : null;
  });
}

test(
  'a command that an operator sends with a call is not run, unless the worker was told to take any payload',
  { tags: [ATTACK] },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'firelock-crontab-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const target = { type: 'pull', queue: 'told' };
    await api.call('PUT', '/api/v1/schedules/told', {
      everySeconds: 86_400,
      target,
      payload: { command: 'true' },
    });
    const payload = { command: `echo ran >> ${folder}/ran` };
    const runs = [
      await api.call('POST', '/api/v1/schedules/told/fire', { payload }),
      await api.call('POST', '/api/v1/runs', { target, payload }),
      await api.call('POST', '/api/v1/schedules/told/fire'),
    ].map(({ body }) => body as unknown as { id: string; payloadFrom: string });
    expect(runs.map(({ payloadFrom }) => payloadFrom)).toEqual(['request', 'request', 'schedule']);
    const careful = workHere(api, ['told'], '');
    const ends = await Promise.all(runs.map(({ id }) => endOf(id)));
    expect(ends.map(({ status }) => status)).toEqual(['failed', 'failed', 'succeeded']);
    expect(ends[0]?.error?.message).toMatch(/did not come from the schedule.*--allow-request-payloads/);
    careful.stop();
    await careful.exited;
    expect(existsSync(`${folder}/ran`)).toBe(false);

    const told = workHere(api, ['told', '--allow-request-payloads'], '');
    await api.call('POST', `/api/v1/runs/${runs[0]?.id ?? ''}/retry`);
    await told.said(/succeeded/);
    expect(existsSync(`${folder}/ran`)).toBe(true);
  },
);

interface End {
  status: string;
  result: { body: string };
  error: { kind: string; message: string } | null;
}
