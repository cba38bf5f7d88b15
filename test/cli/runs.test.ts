import { beforeAll, expect, test } from 'vitest';
import { type Json, SCHEDULE, sharedApi } from '../api/api.ts';
import { firelock } from './cli.ts';

const api = sharedApi();
beforeAll(async () => {
  await api.call('PUT', '/api/v1/schedules/work', { ...SCHEDULE, labels: { team: 'billing' } });
  await api.call('PUT', '/api/v1/schedules/other', SCHEDULE);
});

const run = (...args: string[]) => firelock(args, { url: api.url });
const onTerminal = (terminal: number, ...args: string[]) =>
  firelock(args, { url: api.url, terminal, env: { NO_COLOR: '1' }, now: Date.now() });
const fired = async (id = 'work') =>
  (await api.call('POST', `/api/v1/schedules/${id}/fire`, { payload: { n: 1 } })).body['id'] as unknown as string;
const end = (id: string, status: string, error?: string) =>
  api.call('POST', `/api/v1/runs/${id}/${status === 'cancelled' ? 'cancel' : 'complete'}`, {
    ...(status !== 'cancelled' && { status, error }),
  });

test('runs are listed, filtered, and shown with their attempts', async () => {
  const [first, second] = [await fired(), await fired('other')];
  await end(first, 'cancelled');
  const listed = await run('run list --schedule work --status cancelled --from -1h --to +1h');
  expect(listed.code).toBe(0);
  const now = Date.now();
  const items = async (...args: string[]) => {
    const { json } = await firelock(['run list', ...args], { url: api.url, now });
    return ((json() as Json)['items'] as unknown as { id: string }[]).map(({ id }) => id);
  };
  expect(await items('--schedule', 'work', '--from', '-1h', '--to', '+1h')).toEqual([first]);
  expect(await items('--label', 'team:billing')).toEqual([first]);
  expect(await items('--trigger', 'manual', '--status', 'pending,cancelled', '--all')).toEqual([second, first]);
  expect(await items('--key', 'none')).toEqual([]);
  const { out } = await onTerminal(120, 'run list');
  expect(out.split('\n')[0]).toMatch(/^RUN +SCHEDULE +SCHEDULED FOR +STATUS +TRIGGER +ATTEMPTS +LATE +ERROR$/);
  expect(out).toMatch(new RegExp(`^${first} +work +\\d\\d-\\d\\d [\\d:]+Z +cancelled +manual`, 'm'));
  await api.sql`UPDATE runs SET claimed_by = gen_random_uuid(), claimed_at = clock_timestamp() WHERE id = ${second}`;
  expect((await onTerminal(200, 'run list')).out).toMatch(/ pending, under way since \d\d-\d\d [\d:]+Z +manual/);
  expect((await onTerminal(100, 'run get', second)).out).toMatch(
    /^status +pending(, [\d.]+ \w+ late)?, under way since \S+ [\d:.]+Z$/m,
  );

  expect((await run('run get', second)).out).toBe(`${(await api.call('GET', `/api/v1/runs/${second}`)).text}\n`);
  const shown = await onTerminal(100, 'run get', first);
  expect(shown.out).toMatch(/^status +cancelled \(on request\)$/m);
  expect(shown.out).toMatch(/^payload +\{"n":1\}$/m);
  expect((await run('run get 01a205a0-f3d1-7e21-b738-dab796603963')).code).toBe(3);
});

test('attempts are shown one by one', async () => {
  const id = await fired();
  await end(id, 'cancelled');
  const attempt = (number: number, more: object) => ({
    attempt: number,
    instanceId: '13c0607c-f07a-447e-bb38-c5df107d7a49',
    startedAt: Date.UTC(2030, 0, 1, 12, 0, number),
    finishedAt: Date.UTC(2030, 0, 1, 12, 0, number),
    recovery: false,
    ...more,
  });
  const log = [
    attempt(1, {
      outcome: 'transient',
      statusCode: 503,
      error: { kind: 'http', message: 'the target answered 503' },
    }),
    attempt(2, { outcome: 'accepted', statusCode: 202, recovery: true }),
  ];
  const answer = { ...(await api.call('GET', `/api/v1/runs/${id}`)).body, attemptLog: log };
  const fetched = globalThis.fetch;
  globalThis.fetch = () => Promise.resolve(Response.json(answer));
  try {
    const { out } = await onTerminal(100, 'run get', id);
    expect(out.split('\n').slice(-5)).toEqual([
      expect.stringMatching(/^ATTEMPT +STARTED +OUTCOME +CODE +ERROR$/),
      expect.stringMatching(/^ +1 .* transient +503 +http: the target answered 503$/),
      expect.stringMatching(/^ +2 .* accepted, taken over +202 +-$/),
      'times are UTC',
      '',
    ]);
  } finally {
    globalThis.fetch = fetched;
  }
});

test('what was not as expected is said with the run', async () => {
  const id = await fired();
  const unmetReason = 'its result at "/rows" is less than 1';
  await api.sql`UPDATE runs SET unmet = '{tooFast,result}', unmet_reason = ${unmetReason} WHERE id = ${id}`;
  const shown = await onTerminal(300, 'run get', id);
  expect(shown.out).toContain(`not as expected: it ended too fast, its result (${unmetReason})`);
});

test('a run is cancelled and retried; an impossible action is refused in words', async () => {
  const id = await fired();
  expect((await onTerminal(80, 'run cancel', id)).out).toBe(`run ${id} is cancelled\n`);
  expect((await run('run retry', id)).json()).toMatchObject({ id, status: 'pending' });
  const again = await run('run retry', id);
  expect([again.code, again.out]).toEqual([1, '']);
  expect(again.err).toMatch(/^firelock: .*pending/);
});

test('many runs are cancelled and retried: the command counts, asks, and calls again until it is done', async () => {
  await api.call('PUT', '/api/v1/schedules/many', SCHEDULE);
  for (let index = 0; index < 5; index += 1) await fired('many');
  const cancel = ['run', 'bulk', 'cancel', '--schedule', 'many'];
  const dry = await run(...cancel, '--dry-run');
  expect(dry.json()).toMatchObject({ matched: 5, changed: 0 });
  expect(await run(...cancel)).toMatchObject({ code: 64, out: '' });
  const no = await firelock(cancel, { url: api.url, terminal: 80, typed: ['n'] });
  expect([no.code, no.out]).toEqual([1, '']);
  expect(no.err).toMatch(/^runs that match: 5\n( {2}[\w-]{36}\n){5}Cancel them at http:.*\? \[y\/N\] /);

  const some = await run(...cancel, '--limit', '2', '--yes');
  expect(some.json()).toMatchObject({ matched: 5, changed: 2, remaining: 3 });
  const rest = await run(...cancel, '--limit', '2', '--all', '--yes');
  expect(rest.json()).toMatchObject({ matched: 3, changed: 3, remaining: 0 });
  expect(rest.err).toBe('2 done, 1 to go\n');
  const retried = await firelock('run bulk retry --schedule many --status cancelled', {
    url: api.url,
    terminal: 80,
    typed: ['y'],
  });
  expect([retried.code, retried.out]).toEqual([0, 'runs changed: 5 of 5\n']);
  const nothing = await firelock('run bulk retry --schedule many', {
    url: api.url,
    terminal: 80,
  });
  expect([nothing.code, nothing.out]).toEqual([0, 'runs that match: 0\n']);
});

test('run tail shows new runs and changes, waits during an outage, and ends with Ctrl-C', async () => {
  await api.call('PUT', '/api/v1/schedules/tailed', SCHEDULE);
  const before = await fired('tailed');
  const controller = new AbortController();
  const seen: string[] = [];
  let [added, outages] = ['', 0];
  const fetched = globalThis.fetch;
  // The test itself still gets through.
  const isCommand = (init?: RequestInit) => new Headers(init?.headers).get('user-agent') === 'firelock-cli/0.0.0-test';
  globalThis.fetch = (input, init) =>
    isCommand(init) && outages-- > 0 ? Promise.reject(new Error('connection lost')) : fetched(input, init);
  const react = async (line: string) => {
    seen.push(line);
    if (seen.length === 1) {
      outages = 2;
      added = await fired('tailed');
    } else if (seen.length === 2) await end(before, 'cancelled');
    else controller.abort();
  };
  try {
    const { code, err } = await firelock('run tail --schedule tailed --interval 0.02', {
      url: api.url,
      signal: controller.signal,
      onOut: (line) => void react(String(line)),
    });
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(/^cannot reach .*connection lost.*; retrying\nthe server answers again\n$/),
    ]);
  } finally {
    globalThis.fetch = fetched;
  }
  expect(seen.map((line) => JSON.parse(line) as object)).toMatchObject([
    { id: before, status: 'pending' },
    { id: added, status: 'pending' },
    { id: before, status: 'cancelled' },
  ]);
  const last = await onTerminal(80, 'run tail --schedule tailed --last 2 --count 2');
  expect(last.out.split('\n')).toEqual([
    expect.stringMatching(new RegExp(`Z  cancelled  tailed  \\(on request\\)  ${before}$`)),
    expect.stringMatching(new RegExp(`Z  pending    tailed  .*  ${added}$`)),
    '',
  ]);
  expect((await run('run tail --interval often')).code).toBe(64);
});

test('runs that depend on each other are submitted as a file, shown as a batch, and retried together', async () => {
  const target = { type: 'pull', queue: 'etl' };
  const items = [
    { ref: 'extract', target, payload: 1 },
    { ref: 'load', target, dependsOn: ['extract'] },
  ];
  const sent = { name: 'etl', labels: { pipeline: 'etl' }, items };
  const submit = (input: unknown) => firelock('run submit --file -', { url: api.url, input: JSON.stringify(input) });
  const submitted = (await submit(sent)).json() as Json;
  const batchId = submitted['batchId'] as unknown as string;
  const [extract, load] = (submitted['items'] as unknown as { id: string }[]).map(({ id }) => id);
  const shown = await onTerminal(100, 'batch get', batchId);
  expect(shown.out).toMatch(/name +etl\nlabels +pipeline:etl\n/);
  expect(shown.out).toMatch(new RegExp(`load +waiting +${load ?? ''} +extract\n`));
  const listed = (await run('run list --batch', batchId, '--status', 'waiting')).json() as Json;
  expect((listed['items'] as unknown as { id: string }[]).map(({ id }) => id)).toEqual([load]);
  expect((await onTerminal(200, 'run get', load ?? '')).out).toMatch(
    new RegExp(`batch +${batchId} \\(load\\)\nlabels +pipeline:etl\n`),
  );
  await run('run cancel', extract ?? '');
  const retried = await run('run retry', extract ?? '', '--dependents');
  expect(retried.json()).toMatchObject({ id: extract, status: 'pending' });
  const one = (await submit({ target, labels: { n: '1' } })).json();
  expect(one).toMatchObject({ batchId: null, labels: { n: '1' } });
  expect(await submit({ items: [{ ref: 'a', target, dependsOn: ['a'] }] })).toMatchObject({
    ...{ out: '', code: expect.any(Number) as number },
    err: expect.stringContaining('a → a') as string,
  });
});
