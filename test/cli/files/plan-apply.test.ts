import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from '../../api/api.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { firelock } from '../cli.ts';

let api: Api;
let folder: string;
beforeAll(async () => {
  api = await startApi();
  folder = await mkdtemp(join(tmpdir(), 'firelock-file-'));
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});
afterEach(async () => {
  const tables = 'schedules schedule_versions schedule_calendars calendars limits connections notifiers'.split(' ');
  await api.sql.unsafe(tables.map((table) => `DELETE FROM ${table}`).join(';'));
});

/** Runs `firelock COMMAND FILE`, with this text in the file; lines of the error name the file as FILE. */
async function run(command: 'plan' | 'apply', text: string, args: string[] = [], env: Record<string, string> = {}) {
  const path = join(folder, 'schedules.yaml');
  await writeFile(path, text);
  const { code, out, err } = await firelock([command, path, '--no-json', ...args], { url: api.url, env });
  const lines = (said: string) => said.replaceAll(path, 'FILE').trimEnd().split('\n');
  return { code, out: lines(out), err: lines(err) };
}

const get = async (path: string) => (await api.call('GET', `/api/v1/${path}`)).body;
const versionOf = async (id: string) => (await get(`schedules/${id}`))['version'];
const idsOf = async () => {
  const rows = await api.sql<{ id: string }[]>`SELECT id FROM schedules ORDER BY id`;
  return rows.map(({ id }) => id);
};

const WHOLE = `
set: billing
limits:
  - id: warehouse
    maxRunning: 3
calendars:
  - id: closed
    dates: [2090-12-24, 2090-12-31/2091-01-01]
schedules:
  # Before the schedule that it follows.
  - id: report
    after: {scheduleId: nightly}
    target: &reports
      type: pull
      queue: reports
  - id: nightly
    cron: 0 2 * * *
    timezone: Europe/Berlin
    exclude: {calendars: [closed]}
    limit: warehouse
    target: *reports
    payload: {"amount": 12345678901234567890.10,  "n": 1e400}
    labels: {team: money}
  - id: yearly
    cron: ["0 0 1 1 *", 0 0 2 1 *]
    target: {type: http, url: "https://example.com/y", headers: {authorization: "Bearer \${TOKEN}"}}
    payload:
      big: 9007199254740993
      hex: 0x1F
      text: yes
`;
const env = { TOKEN: 'one', FIRELOCK_FILE_VARIABLES: 'TOKEN' };

test('plan says what would change, apply changes it, and then nothing is left to do', async () => {
  const planned = await run('plan', WHOLE, [], env);
  expect(planned).toMatchObject({ code: 2, err: [''] });
  expect(planned.out).toEqual([
    '+ limit warehouse',
    '+ calendar closed',
    '+ schedule nightly',
    '+ schedule report',
    '+ schedule yearly',
    '5 to create, 0 to change, 0 to delete, 0 unchanged',
  ]);
  expect(await idsOf()).toEqual([]);
  expect(await get('limits')).toMatchObject({ items: [] });

  const applied = await run('apply', WHOLE, [], env);
  expect([applied.code, applied.out.at(-1)]).toEqual([2, '5 created, 0 changed, 0 deleted, 0 unchanged']);
  expect(await get('schedules/nightly')).toMatchObject({
    timezone: 'Europe/Berlin',
    exclude: { calendars: ['closed'] },
    limit: 'warehouse',
    labels: { team: 'money', 'firelock.set': 'billing' },
  });
  const { text } = await api.call('GET', '/api/v1/schedules/nightly');
  expect(text).toContain('"payload":{"amount": 12345678901234567890.10,  "n": 1e400}');
  const yearly = await api.call('GET', '/api/v1/schedules/yearly');
  expect(yearly.text).toContain('"payload":{"big":9007199254740993,"hex":31,"text":"yes"}');

  for (const [command, last] of [
    ['plan', '0 to create, 0 to change, 0 to delete, 5 unchanged'],
    ['apply', '0 created, 0 changed, 0 deleted, 5 unchanged'],
  ] as const)
    expect(await run(command, WHOLE, [], env)).toEqual({ code: 0, out: [last], err: [''] });
  expect(await versionOf('yearly')).toBe(1);
});

test('a plan names each field, also fields that the file names for the first time, and secrets', async () => {
  await run('apply', WHOLE, [], env);
  const changed = WHOLE.replace('maxRunning: 3', 'maxRunning: 4')
    .replace('0 2 * * *', '0 3 * * *')
    .replace('limit: warehouse', 'limit: new')
    .replace('limits:', 'limits:\n  - {id: new, maxRunning: 1}')
    .replace('"n": 1e400', '"n":1e400')
    .replace('after: {scheduleId: nightly}', 'after: {scheduleId: nightly, "on": [failed]}');
  const planned = await run('plan', changed, [], { ...env, TOKEN: 'two' });
  expect(planned.out).toEqual([
    '+ limit new',
    '~ limit warehouse',
    '    /maxRunning: 3 → 4',
    '~ schedule nightly',
    '    /cron: "0 2 * * *" → "0 3 * * *"',
    '    /limit: "warehouse" → "new"',
    '~ schedule report',
    '    /after/on: ["succeeded"] → ["failed"]',
    '~ schedule yearly',
    '    /target/headers/authorization: another secret value',
    '1 to create, 4 to change, 0 to delete, 1 unchanged',
  ]);
  expect(planned.code).toBe(2);
  expect((await run('apply', changed, [], { ...env, TOKEN: 'two' })).code).toBe(2);
  expect((await run('plan', changed, [], { ...env, TOKEN: 'two' })).code).toBe(0);
});

test('of payloads a plan names each place that differs, however long they are', async () => {
  const file = (payload: string, template = 'x') =>
    `schedules:
  - id: big
    everySeconds: 60
    target: {type: http, url: "https://example.com/", body: {template: "${template}", contentType: text/plain}}
    payload: ${payload}
`;
  const long = 'x'.repeat(300);
  const before = `{"a": "${long}", "list": [1, {"b/c": 12345678901234567890.10}], "gone": null, "same": [0]}`;
  await run('apply', file(before, `${long}one${long}`));
  const after = `{"a": "${long}!", "list": [1, {"b/c": 12345678901234567890.11}, 3], "new": null, "same": [0]}`;
  const planned = await run('plan', file(after, `${long}two${long}`));
  const x = (count: number) => 'x'.repeat(count);
  expect(planned.out).toEqual([
    '~ schedule big',
    `    /target/body/template: …${x(40)}one${x(157)}… → …${x(40)}two${x(157)}…`,
    `    /payload/a: …${x(40)}" → …${x(40)}!"`,
    '    /payload/list/1/b~1c: 12345678901234567890.10 → 12345678901234567890.11',
    '    /payload/list/2: absent → 3',
    '    /payload/gone: null → absent',
    '    /payload/new: absent → null',
    '0 to create, 1 to change, 0 to delete, 0 unchanged',
  ]);
  await run('apply', file('{"a": 1, "b": 2}'));
  const turned = await run('plan', file('{"b": 2, "a": 1}'));
  expect(turned.out[1]).toBe('    /payload: {"a":1,"b":2} → {"b":2,"a":1}');
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`n${n}`, n])));
  expect((await run('apply', file(many))).out.slice(-2)).toEqual([
    '    and 52 others, which --json names',
    '0 created, 1 changed, 0 deleted, 0 unchanged',
  ]);
});

const CONNECTED = `
schedules:
  - id: build
    everySeconds: 60
    target:
      type: http
      connection: github
      url: /builds?a={{runId}}
      headers: {x-own: own}
      lookup: {url: /builds/last}
connections:
  - id: github
    url: https://api.github.com/repos
    headers: {X-Version: 2022-11-28}
    auth: {type: bearer, token: "\${TOKEN}"}
`;

test('connections of a file come before the schedules that name them, and their secrets are compared', async () => {
  const planned = await run('plan', CONNECTED, [], env);
  expect(planned).toEqual({
    code: 2,
    out: ['+ connection github', '+ schedule build', '2 to create, 0 to change, 0 to delete, 0 unchanged'],
    err: [''],
  });
  expect([await idsOf(), await get('connections')]).toMatchObject([[], { items: [] }]);
  expect((await run('apply', CONNECTED, [], env)).code).toBe(2);
  expect(await get('schedules/build')).toMatchObject({
    target: { connection: 'github', url: '/builds?a={{runId}}', lookup: { url: '/builds/last' } },
  });
  for (const command of ['plan', 'apply'] as const) expect((await run(command, CONNECTED, [], env)).code).toBe(0);

  const changed = CONNECTED.replace('/repos', '/orgs').replace(
    '  - id: github',
    '  - id: new\n    url: https://new.example\n  - id: github',
  );
  const replanned = await run('plan', changed, [], { ...env, TOKEN: 'two' });
  expect(replanned.out).toEqual([
    '+ connection new',
    '~ connection github',
    '    /url: "https://api.github.com/repos" → "https://api.github.com/orgs"',
    '    /auth/token: another secret value',
    '1 to create, 1 to change, 0 to delete, 1 unchanged',
  ]);
  expect((await run('apply', changed, [], { ...env, TOKEN: 'two' })).code).toBe(2);
  expect(await get('connections/github')).toMatchObject({ version: 2 });
});

test('a plan of schedules that are to name a new connection shows their paths, and no secret', async () => {
  await api.call('PUT', '/api/v1/schedules/build', {
    everySeconds: 60,
    target: { type: 'http', url: 'https://api.github.com/builds' },
  });
  await api.call('PUT', '/api/v1/schedules/pulled', {
    everySeconds: 60,
    target: { type: 'pull', queue: 'q' },
  });
  const text = CONNECTED.replace(
    'schedules:',
    'schedules:\n  - {id: pulled, everySeconds: 60, target: {type: http, connection: github, url: /p, headers: {x: canary}}}',
  );
  const { code, out } = await run('plan', text, [], env);
  expect(code).toBe(2);
  expect(out).toEqual([
    '+ connection github',
    '~ schedule pulled',
    '    /target/type: "pull" → "http"',
    '    /target/queue: "q" → null',
    '    /target/url: null → "/p"',
    '    /target/method: null → "POST"',
    '    /target/headers: null → {"x":"***"}',
    '    /target/body: null → "envelope"',
    '    /target/connection: null → "github"',
    '~ schedule build',
    '    /target/url: "https://api.github.com/builds" → "/builds?a={{runId}}"',
    '    /target/headers/x-own: null → "***"',
    '    /target/lookup: null → {"url":"/builds/last","method":"GET","headers":{}}',
    '    /target/connection: null → "github"',
    '1 to create, 2 to change, 0 to delete, 0 unchanged',
  ]);
  expect(out.join()).not.toMatch(/canary|\.invalid/);
  expect((await run('apply', text, [], env)).code).toBe(2);
  expect((await run('plan', text, [], env)).code).toBe(0);
});

const NOTIFYING = `
notifiers:
  - id: chat
    fallback: pager
    channel: {type: slack, target: {type: http, connection: hooks, url: "/team?x={{runId}}", headers: {x-key: "\${TOKEN}"}}}
  - id: pager
    on: [failed]
    remindSeconds: null
    channel: {type: pagerduty, routingKey: "\${TOKEN}"}
connections:
  - id: hooks
    url: https://hooks.example
`;

test('notifiers come after their fallbacks and connections, and their secrets are compared', async () => {
  const planned = await run('plan', NOTIFYING, [], env);
  expect(planned).toEqual({
    code: 2,
    out: [
      ...['+ connection hooks', '+ notifier pager', '+ notifier chat'],
      '3 to create, 0 to change, 0 to delete, 0 unchanged',
    ],
    err: [''],
  });
  expect((await run('apply', NOTIFYING, [], env)).code).toBe(2);
  expect(await get('notifiers/chat')).toMatchObject({
    ...{ fallback: 'pager', channel: { target: { connection: 'hooks', url: '/team?x={{runId}}' } } },
  });
  expect(await get('notifiers/pager')).toMatchObject({ on: ['failed'], remindSeconds: null });
  for (const command of ['plan', 'apply'] as const) expect((await run(command, NOTIFYING, [], env)).code).toBe(0);
  const changed = await run('apply', NOTIFYING.replace('[failed]', '[late]'), [], { ...env, TOKEN: 'two' });
  expect(changed.out).toEqual([
    '~ notifier pager',
    '    /on: ["failed"] → ["late"]',
    '    /channel/routingKey: another secret value',
    '~ notifier chat',
    '    /channel/target/headers/x-key: another secret value',
    '0 created, 2 changed, 0 deleted, 1 unchanged',
  ]);
});

test('notifiers that are to name a new connection and fallback show these, and faults of notifiers have their lines', async () => {
  await api.call('PUT', '/api/v1/notifiers/chat', {
    channel: { type: 'slack', target: { type: 'http', url: 'https://old.example/team' } },
  });
  const { out } = await run('plan', NOTIFYING, [], env);
  expect(out).toEqual([
    ...['+ connection hooks', '+ notifier pager', '~ notifier chat'],
    '    /channel/target/url: "https://old.example/team" → "/team?x={{runId}}"',
    '    /channel/target/headers/x-key: null → "***"',
    '    /fallback: null → "pager"',
    '    /channel/target/connection: null → "hooks"',
    '2 to create, 1 to change, 0 to delete, 0 unchanged',
  ]);
  const faulty = NOTIFYING.replace('[failed]', '[failing]').replace('remindSeconds: null', 'fallback: chat');
  expect((await run('plan', faulty, [], env)).err.slice(1)).toEqual([
    expect.stringMatching(/^FILE:4: notifier chat, \/fallback: makes a cycle: pager falls back to this notifier/),
    expect.stringMatching(/^FILE:8: notifier pager, \/fallback: makes a cycle: chat falls back to this notifier/),
  ]);
  const kind = await run('plan', NOTIFYING.replace('[failed]', '[failing]'), [], env);
  expect(kind.err[1]).toMatch(/^FILE:7: notifier pager, \/on\/0: /);
});

test('faults of connections have their lines, and so have those of paths below a connection that is not there yet', async () => {
  const faulty = CONNECTED.replace('/builds?a', '/../builds?a')
    .replace('https://api.github.com/repos', 'ftp://api.github.com')
    .replace('{X-Version: 2022-11-28}', '{X-Version: "***"}');
  const { code, err } = await run('apply', faulty, [], env);
  expect(code).toBe(1);
  expect(err).toEqual([
    'firelock: nothing was applied; FILE has errors:',
    expect.stringMatching(/^FILE:8: schedule build, \/target\/url: contains a dot segment/),
    expect.stringMatching(/^FILE:13: connection github, \/url: /),
  ]);
  const kept = await run('plan', CONNECTED.replace('2022-11-28', '"***"'), [], env);
  expect(kept.err[1]).toMatch(/^FILE:14: connection github, \/headers\/X-Version: is "\*\*\*", but there/);
  expect((await run('plan', CONNECTED)).err[1]).toMatch(/^FILE:15: connection github, \/auth\/token: .*TOKEN/);

  await run('apply', CONNECTED, [], env);
  const moved = await run('plan', CONNECTED.replace('api.github.com', 'elsewhere.example'), [], env);
  expect([moved.code, moved.err[1]]).toEqual([1, expect.stringMatching(/^FILE:12: connection github: .*build/)]);
});

test('--prune deletes schedules that have the label of the set and are not in the file, followers first', async () => {
  await run('apply', WHOLE, [], env);
  await api.call('PUT', '/api/v1/schedules/other', {
    everySeconds: 60,
    target: { type: 'pull', queue: 'q' },
  });
  const less = 'set: billing\nschedules:\n  - {id: yearly, everySeconds: 60, target: {type: pull, queue: q}}\n';
  expect((await run('plan', less)).out).not.toContainEqual(expect.stringMatching(/^-/));
  const planned = await run('plan', less, ['--prune']);
  expect(planned.err).toEqual(['']);
  expect(planned.out.filter((line) => line.startsWith('-'))).toEqual(['- schedule report', '- schedule nightly']);
  expect((await run('apply', less, ['--prune'])).code).toBe(2);
  expect(await idsOf()).toEqual(['other', 'yearly']);
  expect((await run('apply', less, ['--prune'])).code).toBe(0);

  const noSet = await run('apply', 'schedules: []', ['--prune']);
  expect([noSet.code, noSet.err[1]]).toEqual([1, expect.stringMatching(/^FILE:1: --prune/)]);
  // The set may be named beside the file, but not another one.
  expect((await run('plan', 'schedules: []', ['--prune', '--set', 'billing'])).out[0]).toBe('- schedule yearly');
  const two = await run('plan', less, ['--set', 'else']);
  expect([two.code, two.err[1]]).toEqual([1, 'FILE:1: set is billing, and --set says else']);
});

test('a file with faults names each of them with its line, and nothing is applied', async () => {
  const { code, err } = await run(
    'apply',
    `set: billing
limit: []
limits:
  - id: few
    maxRunning: many
  - {id: fine, maxRunning: 1}
calendars:
  - id: closed
    dates:
      - 2090-12-24
      - 2090-02-30
schedules:
  - id: one
    cron: 0 25 * * *
    target:
      type: http
      url: https://example.com/
      headers:
        authorization: Bearer \${MISSING}
  - id: two
    everySeconds: 60
    cron: "@daily"
    target: {type: pull, queue: q}
    everySeconds: 61
  - id: one
    everySeconds: 60
  - everySeconds: 60
  - id: three
    at: 2001-01-01T00:00:00Z
    target: {type: pull, queue: q}
    limit: nowhere
    labels: {firelock.set: else}
  - id: four
    cron: 0 0 30 2 *
    target: {type: pull, queue: q, size: 1}
    exclude: {calendars: [closed, unknown]}
  - id: five
    everySeconds: .inf
    after: {scheduleId: six}
    target: {type: pull, queue: q}
  - id: six
    after: {scheduleId: five}
    target: {type: pull, queue: q}
  - id: seven
    after: {scheduleId: nobody}
    target: {type: pull, queue: q}
`,
    ['--variable', 'MISSING'],
  );
  expect(code).toBe(1);
  const said = err
    .slice(1)
    .map((line) =>
      line.replace(/(: must|, \/cron: hour|: cannot be combined|names a day|field of the file;|that JSON has).*/, '$1'),
    );
  expect(said).toEqual([
    'FILE:2: limit is not a field of the file;',
    'FILE:5: limit few, /maxRunning: must',
    'FILE:11: calendar closed, /dates/1: names a day',
    'FILE:14: schedule one, /cron: hour',
    'FILE:19: schedule one, /target/headers/authorization: the environment variable MISSING is not set, or empty',
    'FILE:21: schedule two, /everySeconds: cannot be combined',
    'FILE:22: schedule two, /cron: cannot be combined',
    'FILE:24: the name everySeconds is given twice',
    'FILE:25: schedule one is also on line 13',
    'FILE:27: schedule, /id: is required',
    'FILE:29: schedule three, /at: is more than graceSeconds (60) in the past: it would never fire',
    'FILE:31: schedule three, /limit: names a limit that does not exist: nowhere',
    'FILE:32: schedule three: its label firelock.set is "else", and the set is billing',
    'FILE:35: schedule four, /target/size: is not a field of a target of type "pull"',
    'FILE:38: schedule five, /everySeconds: is not a value that JSON has',
    'FILE:39: schedule five, /after/scheduleId: makes a cycle: six follows this schedule, directly or through others',
    'FILE:42: schedule six, /after/scheduleId: makes a cycle: five follows this schedule, directly or through others',
    'FILE:45: schedule seven, /after/scheduleId: names a schedule that does not exist: nobody',
  ]);
  expect(await idsOf()).toEqual([]);
  expect(await get('limits')).toMatchObject({ items: [] });
  expect(await get('calendars')).toMatchObject({ items: [] });
});

test('a file takes only variables that its reader lists, and none of firelock itself', { tags: [ATTACK] }, async () => {
  const file = (name: string) =>
    `schedules:\n  - id: a\n    everySeconds: 60\n    target: {type: http, url: "https://example.com/", secret: "\${${name}}"}\n`;
  const held = { HELD: `whsec_${Buffer.alloc(32, 1).toString('base64')}`, FIRELOCK_TOKEN: 'flk_x' };
  const unlisted = await run('apply', file('HELD'), ['--variable', 'OTHER'], held);
  expect([unlisted.code, unlisted.err[1]]).toEqual([
    1,
    'FILE:4: schedule a, /target/secret: the environment variable HELD is not in the list of those that a file may use: --variable, or FIRELOCK_FILE_VARIABLES',
  ]);
  const own = 'configures firelock itself, and no file may use it';
  const used = await run('apply', file('FIRELOCK_SECRET_KEYS'), [], held);
  expect(used.err[1]).toBe(`FILE:4: schedule a, /target/secret: the environment variable FIRELOCK_SECRET_KEYS ${own}`);
  const listed = await run('apply', file('HELD'), ['--variable', 'HELD', '--variable', 'FIRELOCK_TOKEN'], held);
  expect(listed).toMatchObject({
    code: 1,
    err: [`firelock: --variable, FIRELOCK_FILE_VARIABLES: "FIRELOCK_TOKEN" ${own}`],
  });
  expect(await idsOf()).toEqual([]);
  expect(JSON.stringify([unlisted, used, listed])).not.toContain(held.HELD);

  expect((await run('apply', file('HELD'), ['--variable', 'HELD'], held)).code).toBe(2);
  expect((await run('plan', file('HELD'), [], { ...held, FIRELOCK_FILE_VARIABLES: 'OTHER, HELD' })).code).toBe(0);
});

test('a file that is no YAML, no object, or empty is refused with its line', async () => {
  for (const [text, line] of [
    ['schedules:\n  - id: a\n  cron: x\n', 3],
    ['{"schedules": [{"id": "a",]\n', 1],
    ['', 1],
    ['- a\n', 1],
    ['schedules: {}\n', 1],
    ['schedules: []\n---\nschedules: []\n', 2],
    [`schedules:\n  - &a {id: x, labels: [*a]}\n`, 2],
    [`a: &a [1,1,1,1,1,1,1,1,1]\nschedules:\n  - {id: x, labels: *b}\n`, 1],
  ] as const) {
    const { code, err } = await run('plan', text);
    expect([text, code]).toEqual([text, 1]);
    expect(err.filter((one) => one.startsWith(`FILE:${line}: `)).length, `${text}\n${err.join('\n')}`).toBeGreaterThan(
      0,
    );
  }
});

test('a pause stays if the file does not mention it, and ends if the file says so', async () => {
  const file = 'schedules:\n  - id: a\n    everySeconds: 60\n    target: {type: pull, queue: q}\n';
  await run('apply', file);
  await api.call('PATCH', '/api/v1/schedules/a', {
    enabled: false,
    pauseReason: 'by hand',
    pauseUntil: '2090-01-01T00:00:00Z',
  });
  expect((await run('apply', file)).code).toBe(0);
  expect((await run('apply', file.replace('60', '61'))).out).toContain('    /everySeconds: 60 → 61');
  const paused = {
    enabled: false,
    pauseReason: 'by hand',
    pauseUntil: '2090-01-01T00:00:00.000Z',
    everySeconds: 61,
  };
  expect(await get('schedules/a')).toMatchObject(paused);
  expect((await run('apply', `${file}    enabled: true\n`)).code).toBe(2);
  expect(await get('schedules/a')).toMatchObject({ enabled: true, pauseReason: null });
});

test('more than a thousand schedules, as JSON, go in batches whose schedules follow each other', async () => {
  const target = { type: 'pull', queue: 'q' };
  const schedules = Array.from({ length: 1203 }, (_, n) => {
    const when = n === 1202 ? { everySeconds: 60 } : { after: { scheduleId: n === 1 ? 's2' : 's1202' } };
    return { id: `s${n}`, ...when, target };
  });
  const text = JSON.stringify({ schedules }, null, '\t');
  const applied = await run('apply', text);
  expect(applied).toMatchObject({ code: 2, err: [''] });
  expect(applied.out.at(-1)).toBe('1203 created, 0 changed, 0 deleted, 0 unchanged');
  expect((await idsOf()).length).toBe(1203);
  const faulty = await run('plan', text.replace('"everySeconds": 60', '"everySeconds": 0'));
  expect([faulty.code, faulty.err.length]).toEqual([1, 2]);
});

test('without a server, or without its role, the exit code is 1 and not that of a change', async () => {
  const path = join(folder, 'schedules.yaml');
  await writeFile(path, 'schedules: [{id: a, everySeconds: 1, target: {type: pull, queue: q}}]');
  const { code, err } = await firelock(['plan', path], { url: 'http://127.0.0.1:9' });
  expect([code, err]).toEqual([1, expect.stringMatching(/cannot reach/)]);
  expect((await firelock(['apply', join(folder, 'none.yaml')], { url: api.url })).code).toBe(1);
  expect((await firelock(['apply', path, '--prun'], { url: api.url })).code).toBe(64);
  expect((await firelock('plan - --json', { url: api.url, input: 'limits: [{id: x, maxRunning: 1}]' })).json()).toEqual(
    {
      changes: [{ kind: 'limits', id: 'x', change: 'created', fields: [] }],
      unchanged: 0,
      applied: false,
    },
  );
});
