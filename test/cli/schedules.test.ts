import { beforeAll, expect, test } from 'vitest';
import { SCHEDULE, sharedApi } from '../api/api.ts';
import { firelock } from './cli.ts';

const api = sharedApi();
beforeAll(async () => {
  for (const [id, extra] of Object.entries({
    invoices: { labels: { team: 'billing' }, description: 'sends\nthem \u001b[31m' },
    reports: { timezone: 'Europe/Berlin' },
    sweep: { enabled: false },
  })) {
    expect((await api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, ...extra })).status).toBe(201);
  }
});

const run = (...args: string[]) => firelock(args, { url: api.url });
const onTerminal = (terminal: number, ...args: string[]) =>
  firelock(args, { url: api.url, terminal, env: { NO_COLOR: '1' } });

test('schedule list prints a table on a terminal and JSON elsewhere, page by page', async () => {
  const { code, json, err } = await run('schedule list --all');
  expect([code, err]).toEqual([0, '']);
  expect(json()).toEqual((await api.call('GET', '/api/v1/schedules')).body);

  const two = await onTerminal(100, 'schedule list --limit 2');
  expect(two.out.split('\n').slice(0, -1)).toEqual([
    expect.stringMatching(/^ID +STATUS +WHEN +ZONE +NEXT FIRE$/),
    expect.stringMatching(/^invoices +active +0 12 29 2 \* +- +\d{4}-02-29 12:00:00Z$/),
    expect.stringMatching(/^reports +active +0 12 29 2 \* +Europe\/Berlin +\d{4}-02-29 11:00:00Z$/),
    'times are UTC',
    'there are more: use --limit N, or --all',
  ]);
  const found = await run('schedule list --label team:billing --status active');
  expect(found.json()).toMatchObject({ items: [{ id: 'invoices' }], nextCursor: null });
});

const answered = async (id: string) => (await api.call('GET', `/api/v1/schedules/${id}`)).body;
const textOf = async (id: string) => (await api.call('GET', `/api/v1/schedules/${id}`)).text;
const HOOK = ['--cron', '0 12 29 2 *', '--url', 'https://example.com/hook'];

test('schedule set creates a missing schedule, and says so', async () => {
  const { code, err, json } = await run(
    ...['schedule', 'set', 'new', ...HOOK, '--timezone', 'Europe/Berlin', '--method', 'PUT'],
    ...['--label', 'team:billing', '--label', 'url:http://x', '--set', 'retry.maxAttempts=3'],
    ...['--set', '/labels/a.b="c"', '--payload', '{"n": 12345678901234567890.10, "x": null}'],
  );
  expect([code, err]).toEqual([0, 'created schedule new, version 1\n']);
  expect(json()).toMatchObject({
    id: 'new',
    timezone: 'Europe/Berlin',
    target: { method: 'PUT' },
    labels: { team: 'billing', url: 'http://x', 'a.b': 'c' },
    retry: { maxAttempts: 3, maxBackoffSeconds: 3600 },
  });
  expect(await textOf('new')).toContain('"payload":{"n": 12345678901234567890.10, "x": null}');
  const many = await onTerminal(120, 'schedule set many --cron', '0 9 * * 1', ...HOOK);
  expect(many.out).toMatch(/^created schedule many, version 1; next fire \d{4}-.*Z\n$/);
  expect((await answered('many'))['cron']).toEqual(['0 9 * * 1', '0 12 29 2 *']);
});

test('schedule set changes the named fields and nothing else, and replaces a payload completely', async () => {
  await api.call('PUT', '/api/v1/schedules/kept', {
    ...SCHEDULE,
    description: 'stays',
    labels: { team: 'billing' },
    target: { ...SCHEDULE.target, headers: { authorization: 'Bearer swordfish' } },
    payload: { old: 1, keep: 2 },
  });
  const before = await answered('kept');
  const volatile = { version: 2, updatedAt: expect.any(String) as string };
  const set = await run('schedule set kept --label tier:batch --set', 'overlap="skip"');
  expect([set.code, set.err]).toEqual([0, 'changed schedule kept, version 2\n']);
  const labels = { team: 'billing', tier: 'batch' };
  expect(await answered('kept')).toEqual({ ...before, ...volatile, labels, overlap: 'skip' });

  await run('schedule set kept --payload-file - --unset overlap').then(({ code }) => {
    expect(code).toBe(1); // Nothing on standard input.
  });
  const input = ' {"new": 1.50, "gone": null}\n';
  expect(
    await firelock('schedule set kept --payload-file - --every 3600 --unset overlap', {
      url: api.url,
      input,
    }),
  ).toMatchObject({ code: 0, err: 'changed schedule kept, version 3\n' });
  expect(await textOf('kept')).toContain('"payload":{"new": 1.50, "gone": null},');
  expect(await answered('kept')).toMatchObject({
    ...{ cron: null, everySeconds: 3600, overlap: 'allow', description: 'stays', labels },
    target: { headers: { authorization: '***' } },
  });

  const same = await run('schedule set kept --every 3600');
  expect([same.code, same.err]).toEqual([0, 'unchanged: schedule kept, version 3\n']);
  expect((await run('schedule set kept --queue reports')).code).toBe(0);
  expect((await answered('kept'))['target']).toEqual({ type: 'pull', queue: 'reports' });
});

test('schedule set says what is sent, and what counts as a success', async () => {
  const set = (...args: string[]) =>
    firelock(['schedule set called', ...args], { url: api.url, input: '{"text": "{{runId}}"}\n' });
  const target = async () => (await answered('called'))['target'];
  await set(
    ...[...HOOK, '--body-file', '-', '--succeed', '409,3xx', '--retry-on', '404', '--fail-on', '500-502,5xx'],
  ).then(({ code, err }) => {
    expect([code, err]).toEqual([1, expect.stringMatching(/\/target\/outcome\/fail\/1/)]);
  });
  await set(
    ...[...HOOK, '--body-file', '-', '--succeed', '409,3xx', '--retry-on', '404', '--fail-on', '500-502,504'],
    ...['--set', 'target.outcome.require.pointer="/ok"', '--set', 'target.outcome.require.equals=true'],
  );
  const outcome = {
    succeed: [409, '3xx'],
    retry: [404],
    fail: ['500-502', 504],
    require: { pointer: '/ok', equals: true },
    otherwise: null,
  };
  const body = { template: '{"text": "{{runId}}"}\n', contentType: 'application/json' };
  expect(await target()).toMatchObject({ body, outcome });

  await set('--content-type', 'text/plain', '--retry-on', '404,429');
  await set('--body-file', '-');
  const changed = {
    body: { ...body, contentType: 'text/plain' },
    outcome: { ...outcome, retry: [404, 429] },
  };
  expect(await target()).toMatchObject(changed);
  await set('--body', '{"template": "[1]", "contentType": "application/json"}', '--unset', 'target.outcome');
  expect(await target()).toMatchObject({ body: { ...body, template: '[1]' }, outcome: null });
  await set('--body', 'payload');
  expect(await target()).toMatchObject({ body: 'payload' });
});

test('schedule set refuses to overwrite a schedule that has changed meanwhile', async () => {
  await api.call('PUT', '/api/v1/schedules/raced', SCHEDULE);
  const [fetched, race] = [globalThis.fetch, { left: 1 }];
  globalThis.fetch = async (input, init) => {
    if (init?.method === 'PATCH' && race.left-- > 0)
      await api.call('PATCH', '/api/v1/schedules/raced', { description: 'another' });
    return fetched(input, init);
  };
  try {
    const { code, err } = await run('schedule set raced --description mine');
    expect([code, err]).toEqual([1, 'firelock: schedule raced has changed: its ETag is "2"\n']);
  } finally {
    globalThis.fetch = fetched;
  }
  expect(await answered('raced')).toMatchObject({ description: 'another', version: 2 });
});

test('the answer of GET can be edited and given back as a file', async () => {
  await run('schedule set filed', ...HOOK, '--payload', '[1.0]');
  const { out } = await run('schedule get filed');
  const set = (input: string, ...more: string[]) =>
    firelock(['schedule set filed --file -', ...more], { url: api.url, input });
  expect((await set(out)).err).toBe('unchanged: schedule filed, version 1\n');
  expect((await set(out.replace('"description":null', '"description":"new"'))).err).toBe(
    'changed schedule filed, version 2\n',
  );
  expect(await textOf('filed')).toContain('"payload":[1.0]');
  expect((await set('{')).err).toMatch(/^firelock: - is not JSON: /);
  expect((await set(out, '--every', '5')).err).toBe(
    'firelock: --file holds the whole definition: leave out all other options\n',
  );
  expect((await run('schedule set filed --file /nowhere')).err).toMatch(/cannot read \/nowhere/);
});

test('every fault that the server names is on a line; a command that is not understood is code 64', async () => {
  const { code, err } = await run(
    ...['schedule', 'set', 'new', '--every', 'soon', '--url', 'ftp://x', '--set', 'retry.maxAttempts="a"'],
  );
  expect(code).toBe(1);
  expect(err.split('\n').slice(1, -1)).toEqual([
    expect.stringMatching(/^ {2}\/everySeconds: /),
    expect.stringMatching(/^ {2}\/target\/url: /),
    expect.stringMatching(/^ {2}\/retry\/maxAttempts: /),
  ]);
  for (const args of [
    ['set', 'new'],
    ['set', 'new', '--set', 'overlap'],
    ['set', 'new', '--set', 'overlap=skip'],
    ['set', 'new', '--payload', '1, "enabled": false'],
    ['set', 'new', '--payload', '1', '--payload-file', 'x'],
    ['set', 'new', '--on', 'failed'],
    ['set', 'new', '--queue', 'q', '--url', 'http://x'],
    ['set', 'new', '--queue', 'q', '--fail-on', '404'],
    ['set', 'new', '--body', 'all'],
    ['set', 'new', '--body', 'payload', '--content-type', 'text/plain'],
    ['set', 'new', '--body', 'payload', '--body-file', '-'],
    ['set', 'new', '--body-file', '-', '--payload-file', '-'],
    ['set', 'new', '--label', 'team'],
    ['get'],
    ['get', 'a', 'b'],
    ['list', '--limit', '0'],
    ['list', '--colour'],
    [],
  ])
    expect([args, (await run('schedule', ...args)).code]).toEqual([args, 64]);
  for (const option of ['--body-file', '--payload-file', '--file'])
    expect([option, (await run('schedule set new', option, '/nowhere')).code]).toEqual([option, 1]);
  expect(await run('schedule get a/b?c')).toMatchObject({ code: 1 });
  expect(await run('schedule get nobody')).toMatchObject({
    code: 3,
    out: '',
    err: 'firelock: there is no schedule nobody\n',
  });
});

test('a schedule is paused, resumed, shown, and deleted after a question', async () => {
  await api.call('PUT', '/api/v1/schedules/paused', SCHEDULE);
  const pause = await firelock(['schedule pause paused --reason', 'the bank is closed', '--until', '+3d'], {
    url: api.url,
    now: Date.UTC(2040, 0, 1),
    terminal: 100,
  });
  expect(pause.out).toBe('schedule paused is paused until 2040-01-04 00:00:00Z\n');
  const shown = await onTerminal(100, 'schedule get paused');
  expect(shown.out).toMatch(/^status +paused$/m);
  expect(shown.out).toMatch(/^paused because +the bank is closed$/m);
  expect((await run('schedule resume paused')).json()).toMatchObject({
    enabled: true,
    pauseReason: null,
  });

  expect(await run('schedule delete paused')).toMatchObject({
    code: 64,
    err: 'firelock: this command asks for confirmation, and there is no terminal to ask on: add --yes\n',
  });
  const asked = (typed: string[]) => firelock('schedule delete paused', { url: api.url, terminal: 80, typed });
  expect(await asked(['no'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('nothing was changed') as string,
  });
  expect((await asked([])).code).toBe(1);
  expect((await answered('paused'))['id']).toBe('paused');
  expect(await asked(['y'])).toMatchObject({ code: 0, out: 'schedule paused is deleted\n' });
  expect((await run('schedule delete paused --yes')).code).toBe(3);
});

test('a fire is made by hand, and a coming one is skipped', async () => {
  const fire = ['schedule', 'fire', 'sweep', '--payload', '[1e400]', '--key', 'once'];
  const first = await run(...fire);
  expect(first.out).toContain('"payload":[1e400]');
  expect((await run(...fire)).json()).toMatchObject({ id: (first.json() as { id: string }).id });
  expect((await onTerminal(80, 'schedule fire sweep')).out).toMatch(/^run [\w-]{36} is pending; /);

  const { items } = (await run('schedule upcoming reports --count 2')).json() as {
    items: { fireAt: string }[];
  };
  const at = items[0]?.fireAt ?? '';
  expect((await run('schedule skip reports', at, '--reason', 'moved')).json()).toEqual({
    fireAt: at,
    skipped: true,
  });
  const upcoming = await onTerminal(100, 'schedule upcoming reports --count 1');
  expect(upcoming.out.split('\n')[1]).toMatch(/^\d{4}-02-29 11:00:00Z +\d{4}-02-29 12:00:00\+01:00 +skipped: moved$/);
  expect((await onTerminal(80, 'schedule unskip reports', at)).out).toMatch(/^schedule reports will fire at /);
  const wrong = await run('schedule skip reports 2031-01-01T00:00:00Z');
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/is not a fire time of this schedule/)]);
});

test('schedule why says why somebody had a fire skipped', async () => {
  await api.call('PUT', '/api/v1/schedules/skipped', { ...SCHEDULE, cron: '0 * * * *' });
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  const at = new Date(hour).toISOString();
  await api.sql`UPDATE schedule_versions SET at = at - interval '2 days' WHERE schedule_id = 'skipped'`;
  await api.sql`UPDATE schedules SET created_at = created_at - interval '2 days', next_occurrence_at = ${at}, next_fire_at = ${at},
    has_skips = true WHERE id = 'skipped'`;
  await api.sql`INSERT INTO skips (schedule_uid, fire_at, reason, asked_at)
    SELECT uid, ${at}, 'closed for stocktaking', now() FROM schedules WHERE id = 'skipped'`;
  await api.call('PATCH', '/api/v1/schedules/skipped', { cron: '30 * * * *' });
  const period = ['--from', at, '--to', new Date(hour + 1000).toISOString()];
  const { out } = await onTerminal(200, 'schedule why skipped', ...period);
  expect(out).toMatch(/skipped: a caller asked to skip it: closed for stocktaking \(run [\w-]{36}\)$/m);
});

test('schedule why says what became of each fire, in words, and of runs that no schedule planned', async () => {
  await api.call('PUT', '/api/v1/schedules/past', {
    ...SCHEDULE,
    cron: '0 * * * *',
    timezone: 'Europe/Berlin',
  });
  await api.sql`UPDATE schedule_versions SET at = at - interval '2 days' WHERE schedule_id = 'past'`;
  const hour = 3_600_000;
  const end = Math.floor(Date.now() / hour) * hour;
  const iso = (at: number) => new Date(at).toISOString();
  const period = ['--from', iso(end - 3 * hour), '--to', iso(end - hour)];
  const backfill = await run('schedule backfill past', ...period);
  expect(backfill.json()).toEqual({ created: 2, existing: 0, remainingFrom: null });
  const then = await run('schedule backfill past', ...period, '--as', 'then');
  expect(then.json()).toEqual({ created: 0, existing: 2, remainingFrom: null });
  const fired = (await run('schedule fire past')).json() as { id: string };

  const why = ['schedule', 'why', 'past', '--from', iso(end - 3 * hour), '--to', '+2h'];
  const now = Date.now();
  const json = (await firelock(why, { url: api.url, now })).json() as Record<string, { run?: unknown }[]>;
  expect(json['items']?.slice(0, 2)).toMatchObject(
    [3, 2].map((ago) => ({
      fireAt: iso(end - ago * hour),
      state: 'fired',
      run: { trigger: 'backfill', status: 'pending' },
    })),
  );
  expect(json['otherRuns']).toEqual([expect.objectContaining({ id: fired.id })]);
  const { out } = await firelock(why, {
    url: api.url,
    now,
    terminal: 100,
    zone: 'Asia/Tokyo',
    env: { NO_COLOR: '1' },
  });
  const lines = out.split('\n');
  expect(lines[0]).toMatch(/^past fires 0 \* \* \* \* \(Europe\/Berlin\) and is active; next fire /);
  expect(lines[1]).toMatch(/Z = .*\+09:00 {2}fired: pending, next attempt .* \(run [\w-]{36}\)$/);
  expect(out).toMatch(/ {2}upcoming: it is still to come$/m);
  expect(out).toMatch(/^runs that belong to none of its fire times:\n.*manual: pending.*\(run [\w-]{36}\)$/m);
  expect(lines.at(-2)).toBe('times are UTC = Asia/Tokyo');

  const one = await run('schedule why past', ...period, '--limit', '1');
  expect(one.json()).toMatchObject({ items: [{ fireAt: iso(end - 3 * hour) }], otherRuns: [] });
  await run('schedule set follower --after past --on failed --url https://example.com');
  const followed = await onTerminal(100, 'schedule why follower');
  expect([followed.code, followed.out]).toEqual([
    0,
    'follower fires after past (failed) and is active\ntimes are UTC\n',
  ]);
  const none = await onTerminal(100, 'schedule why invoices --from -1m --to now');
  expect(none.out).toContain('no fire was due between');
});

test('schedule why says who paused, and while no instance was up', async () => {
  const { sql } = api;
  const ago = (minutes: number) => sql`date_trunc('hour', clock_timestamp()) - make_interval(mins => ${minutes})`;
  await api.call('PUT', '/api/v1/schedules/quiet', { ...SCHEDULE, cron: '0 * * * *', catchUp: 'skip' });
  await sql`UPDATE schedule_versions SET at = ${ago(250)} WHERE schedule_id = 'quiet'`;
  await sql`UPDATE schedules SET next_occurrence_at = ${ago(240)}, next_fire_at = ${ago(240)} WHERE id = 'quiet'`;
  await api.call('PATCH', '/api/v1/schedules/quiet', { enabled: false, pauseReason: 'lunch' });
  await sql`UPDATE schedule_versions SET by = 'ops' WHERE schedule_id = 'quiet' AND version = 2`;
  for (const [began, ended] of [
    [600, 200],
    [500, 250],
    [100, 90],
  ] as const)
    await sql`INSERT INTO instances (id, host, version, zone_data, ttl_seconds, started_at, heartbeat_at)
      VALUES (gen_random_uuid(), 'test', '0', '2026c', 1, ${ago(began)}, ${ago(ended)})`;
  const asked = ['schedule', 'why', 'quiet', '--from', '-6h', '--to', '+2h'];
  const env = { NO_COLOR: '1' };
  const { out } = await firelock(asked, { url: api.url, now: Date.now(), terminal: 400, env });
  const [standing, first, ...others] = out.split('\n');
  expect(standing).toMatch(/ and is paused since \S+ \S+Z, by ops: lunch$/);
  expect(first).toMatch(/missed: no instance could plan it in time; catchUp "skip"/);
  const gap = /missed: no instance was up from \S+ \S+:40:00Z to \S+ \S+:20:00Z; catchUp "skip" makes/;
  expect(others.slice(0, 2)).toEqual([expect.stringMatching(gap), expect.stringMatching(gap)]);
  expect(others.at(-3)).toMatch(/paused: the schedule was paused since \S+ \S+Z, by ops: lunch$/);
});

test('all matching schedules are paused and resumed, after a count', async () => {
  const bulk = ['schedule', 'bulk', 'pause', '--label', 'bulk:yes'];
  for (const id of ['bulk-1', 'bulk-2'])
    await api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, labels: { bulk: 'yes' } });
  const dry = await onTerminal(80, ...bulk, '--dry-run');
  expect(dry.out).toBe('schedules that match: 2\n  bulk-1\n  bulk-2\n');
  expect((await answered('bulk-1'))['enabled']).toBe(true);
  expect(await run(...bulk)).toMatchObject({ code: 64, out: '' });
  const done = await firelock([...bulk, '--reason', 'x'], { url: api.url, terminal: 80, typed: ['yes'] });
  expect([done.code, done.out]).toEqual([0, 'schedules changed: 2 of 2\n']);
  expect(await answered('bulk-2')).toMatchObject({ enabled: false, pauseReason: 'x' });
  const resumed = await run('schedule bulk resume --q bulk- --yes');
  expect(resumed.json()).toMatchObject({ matched: 2, changed: 2 });
  expect(await run('schedule bulk resume --yes')).toMatchObject({
    code: 1,
    err: 'firelock: /filter must have at least one field: an empty filter matches everything\n',
  });
});
