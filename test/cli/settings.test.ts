import { expect, test } from 'vitest';
import { firelock } from './cli.ts';
import { SCHEDULE, sharedApi } from '../api/api.ts';

const api = sharedApi();

const run = (...args: string[]) => firelock(args, { url: api.url });
const onTerminal = (terminal: number, ...args: string[]) =>
  firelock(args, { url: api.url, terminal, env: { NO_COLOR: '1' } });

test('verify prints a table and the violations, and exits 1 if there are any', async () => {
  const sound = await onTerminal(200, 'verify');
  expect([sound.code, sound.err]).toEqual([0, '']);
  expect(sound.out).toMatch(/^CHECK +VIOLATIONS {2}WHAT HOLDS$/m);
  expect(sound.out).toMatch(/^oneRunForEachFire +0 {2}each fire time of a schedule has at most one run$/m);

  await api.call('PUT', '/api/v1/schedules/a', SCHEDULE);
  await api.sql`DELETE FROM schedule_versions WHERE schedule_id = 'a'`;
  const broken = await onTerminal(200, 'verify');
  expect(broken.code).toBe(1);
  expect(broken.out).toMatch(/^definitionsAreThere +1 /m);
  expect(broken.out).toMatch(/^definitionsAreThere: schedule a: has no version 1$/m);
  const json = await run('verify');
  expect([json.code, json.json()]).toMatchObject([1, { ok: false }]);
});

test('a calendar is created and changed date by date, and the rest of it stays', async () => {
  const set = (...args: string[]) => run('calendar set holidays', ...args);
  expect(await set('--add', '2030-12-25', '--description', 'closed')).toMatchObject({
    code: 0,
    err: 'created calendar holidays, version 1\n',
  });
  await set('--add', '2030-12-31/2031-01-01', '--add', '2030-12-25');
  const removed = await set('--remove', '2030-12-25');
  expect(removed.json()).toMatchObject({
    description: 'closed',
    dates: ['2030-12-31/2031-01-01'],
    version: 3,
  });
  expect(await set('--remove', '2030-12-25')).toMatchObject({ code: 1, out: '' });
  expect((await set()).code).toBe(64);
  expect((await set('--date', 'Christmas')).code).toBe(1);
  expect((await set('--date', '2031-05-01')).json()).toMatchObject({ dates: ['2031-05-01'], version: 4 });

  expect((await run('calendar list --q holi')).json()).toMatchObject({
    items: [{ id: 'holidays' }],
  });
  const list = await onTerminal(80, 'calendar list');
  expect(list.out).toMatch(/^ID +DATES +UPDATED +DESCRIPTION\nholidays +1 +.*Z +closed\n$/);
  expect((await onTerminal(80, 'calendar get holidays')).out).toMatch(/^2031-05-01$/m);
  expect((await run('calendar delete holidays --yes')).json()).toEqual({ deleted: 'holidays' });
  expect((await run('calendar get holidays')).code).toBe(3);
});

test('a limit is created, and fields that are not named stay', async () => {
  const made = await run('limit set warehouse --max 3 --description connections');
  expect([made.code, made.err]).toEqual([0, 'created limit warehouse, version 1\n']);
  expect((await onTerminal(80, 'limit set warehouse --max 4')).out).toBe('changed limit warehouse, version 2\n');
  expect((await run('limit get warehouse')).json()).toMatchObject({
    description: 'connections',
    maxRunning: 4,
  });
  expect((await onTerminal(80, 'limit list')).out).toMatch(/^warehouse +4 +0 +0 +.*Z +connections$/m);
  expect((await onTerminal(80, 'limit get warehouse')).out).toMatch(/^max +4$/m);
  const wrong = await run('limit set warehouse --max many');
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/\/?maxRunning must be/)]);
  expect((await run('limit set warehouse')).code).toBe(64);
  expect((await run('limit delete warehouse --yes')).code).toBe(0);
  expect((await run('limit list')).json()).toEqual({ items: [], nextCursor: null });
});

test('a connection is set from a file, shown without its secrets, used by a schedule, and deleted', async () => {
  const set = (input: string) => firelock('connection set github --file -', { url: api.url, input });
  const yaml = [
    'url: https://api.github.com',
    'description: GitHub',
    'headers: { X-Version: 2022-11-28 }',
    'auth: { type: bearer, token: canary }',
  ].join('\n');
  const made = await set(yaml);
  expect([made.code, made.err]).toEqual([0, 'created connection github, version 1\n']);
  expect(made.json()).toMatchObject({ headers: { 'X-Version': '***' }, auth: { token: '***' } });
  const shown = await run('connection get github --json');
  expect((await set(shown.out)).err).toBe('unchanged: connection github, version 1\n');
  expect((await set(yaml.replace('canary', 'another'))).err).toBe('changed connection github, version 2\n');

  const forPeople = await onTerminal(100, 'connection get github');
  expect(forPeople.out).toMatch(
    /^url +https:\/\/api.github.com\nheader X-Version +\*{3}\nauth type +bearer\nauth token +\*{3}$/m,
  );
  expect((await onTerminal(100, 'connection list --q git')).out).toMatch(
    /^ID +URL +LOGIN +UPDATED +DESCRIPTION\ngithub +https:\/\/api.github.com +bearer +.*Z +GitHub\n$/,
  );

  const args = ['schedule', 'set', 'build', '--cron', '0 2 * * *', '--url', '/dispatches'];
  expect((await run(...args, '--connection', 'github')).json()).toMatchObject({
    target: { type: 'http', connection: 'github', url: '/dispatches' },
  });
  expect((await run(...args, '--connection', 'nobody')).code).toBe(1);
  const named = await run('connection delete github --yes');
  expect([named.code, named.err]).toEqual([1, expect.stringContaining('build')]);
  await run('schedule delete build --yes');
  expect((await run('connection delete github --yes')).json()).toEqual({ deleted: 'github' });
  expect((await run('connection get github')).code).toBe(3);
});

test('a file that is no connection is refused, and nothing of it is printed', async () => {
  const set = (input: string) => firelock('connection set other --file -', { url: api.url, input });
  const broken = await set('url: https://a.example\nauth: {type: bearer, token: *canary');
  expect(broken).toMatchObject({ code: 1, out: '' });
  expect(broken.err).toMatch(/^firelock: -:2: neither JSON nor YAML: [A-Z_]+\n$/);
  expect(await set('auth: {type: bearer, token: canary}')).toMatchObject({ code: 1, out: '' });
  expect((await set('url: *canary')).err).not.toContain('canary');
  expect((await set('')).code).toBe(1);
  expect((await run('connection set other')).code).toBe(64);
});

test('maintenance begins, is shown, and ends', async () => {
  expect((await onTerminal(80, 'maintenance status')).out).toBe('maintenance is off\n');
  const on = ['maintenance', 'on', '--reason', 'the move', '--until', '2040-01-01T00:00:00Z', '--hold'];
  expect((await run(...on)).json()).toMatchObject({ on: true, dispatch: 'hold', reason: 'the move' });
  expect((await onTerminal(80, 'maintenance status')).out).toMatch(
    /^maintenance is on since .*Z; until 2040-01-01 00:00:00Z; nothing is handed off; because: the move\n$/,
  );
  expect((await run('maintenance off')).json()).toMatchObject({ on: false });
});

test('a preview explains an expression', async () => {
  const args = ['preview', '30 2 * * *', '--timezone', 'Europe/Berlin', '--from', '2030-03-30T12:00:00Z'];
  expect((await run(...args, '--count', '1')).json()).toMatchObject({
    description: 'At 02:30',
    items: [{ fireAt: '2030-03-31T01:00:00.000Z', note: 'moved by DST' }],
  });
  expect((await onTerminal(100, ...args, '--count', '2')).out.split('\n').slice(0, 4)).toEqual([
    'At 02:30',
    expect.stringMatching(/^FIRES AT +IN ITS ZONE +REMARK$/),
    expect.stringMatching(/^03-31 01:00:00Z +2030-03-31 03:00:00\+02:00 +moved by DST$/),
    expect.stringMatching(/^04-01 00:30:00Z +2030-04-01 02:30:00\+02:00 +-$/),
  ]);
  expect((await onTerminal(100, 'preview', 'H * * * *')).out).toMatch(/^assumed: an id like no other/m);
  expect((await run('preview --every 60 --id x')).code).toBe(0);
  const rules = ['--set', 'exclude.weekdays=["sat","sun"]', '--set', 'pick={"of":"month","nth":[-1]}'];
  const picked = ['preview', '0 9 * * *', '--from', '2027-01-01T00:00:00Z', '--count', '1', ...rules];
  expect((await run(...picked)).json()).toMatchObject({ items: [{ fireAt: '2027-01-29T09:00:00.000Z' }] });
  expect((await run('preview', '61 * * * *')).err).toMatch(/61/);
  expect((await run('preview')).code).toBe(64);
});

test('queues, instances, numbers and the caller are shown', async () => {
  await api.call('POST', '/api/v1/runs', { target: { type: 'pull', queue: 'reports' } });
  expect((await onTerminal(80, 'queue list')).out).toMatch(/^reports +\d +\d +0 +\S+( \S+)? +0$/m);
  expect((await run('queue list')).json()).toMatchObject({ items: [{ queue: 'reports' }] });
  await api.sql`INSERT INTO instances (id, host, version, zone_data, started_at, heartbeat_at)
    VALUES (gen_random_uuid(), 'vm', '0.1.0', '2030a', now(), now())`;
  expect((await onTerminal(100, 'instance list')).out).toMatch(/^[\w-]{36} +vm +yes +0 +0\.1\.0 /m);
  expect((await onTerminal(80, 'stats')).out).toMatch(/^runs +1$[^]*^open +1$/m);
  expect((await run('stats --from +1d')).json()).toMatchObject({ totalRuns: 0 });
  expect((await run('stats --schedule nobody')).code).toBe(3);
  expect((await run('me')).json()).toEqual({ name: null, role: 'admin', scope: null });
  expect((await onTerminal(80, 'me')).out).toBe(`anonymous (the server requires no token), admin, at ${api.url}\n`);
});

test('notifiers are written by a file, listed, shown, tested and deleted', async () => {
  const set = async (id: string, input: string) =>
    firelock(['notifier set', id, '--file', '-'], { url: api.url, input });
  const text = 'channel: {type: pagerduty, routingKey: canary}\non: [late]\n';
  expect((await set('pager', text)).err).toContain('created notifier pager, version 1');
  expect((await set('pager', text)).err).toContain('unchanged: notifier pager, version 1');
  expect((await onTerminal(160, 'notifier list')).out).toMatch(
    /^pager +yes +pagerduty +https:\/\/events.pagerduty.com\/v2\/enqueue +late /m,
  );
  const shown = (await onTerminal(100, 'notifier get pager')).out;
  expect(shown).toMatch(/^reminds +every 86400 s$/m);
  expect(shown).not.toContain('canary');
  const tested = await run('notifier test pager');
  expect(tested.json()).toMatchObject({ trigger: 'notify', notifierId: 'pager', status: 'pending' });
  expect((await run('notifier delete pager --yes')).json()).toEqual({ deleted: 'pager' });
  expect((await run('notifier get pager')).code).toBe(3);
});
