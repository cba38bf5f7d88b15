import { describe, expect, test } from 'vitest';
import { type Answer, SCHEDULE, TARGET, faultPaths, sharedApi, errorsOf } from '../api.ts';

const api = sharedApi();

const put = (id: string, target: object) =>
  api.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, target: { ...TARGET, ...target } });
const patch = (id: string, target: object) => api.call('PATCH', `/api/v1/schedules/${id}`, { target });
const targetOf = ({ body }: Answer) => body['target'] as Record<string, unknown>;

describe('the body of a target', () => {
  const template = '{"text":"{{payload/title}} ({{runName}})","run":{{runId}}}';

  test('is the envelope by default, and the answer of GET can be sent back', async () => {
    const created = await put('b', { body: { template } });
    expect(targetOf(created)).toMatchObject({
      body: { template, contentType: 'application/json' },
      outcome: null,
    });
    const again = await put('b', targetOf(created));
    expect([again.status, again.body['version']]).toEqual([200, 1]);
    expect(targetOf(await put('b', {}))).toMatchObject({ body: 'envelope' });
  });

  test('is changed by a merge patch, and reset by null', async () => {
    await put('p', { body: { template } });
    const typed = await patch('p', { body: { contentType: 'application/vnd.api+json' } });
    expect(targetOf(typed)['body']).toEqual({ template, contentType: 'application/vnd.api+json' });
    expect(targetOf(await patch('p', { body: 'payload' }))['body']).toBe('payload');
    expect(targetOf(await patch('p', { body: { template: '1' } }))['body']).toMatchObject({ template: '1' });
    expect(targetOf(await patch('p', { body: null }))['body']).toBe('envelope');
  });

  test.each([
    [{ body: 'json' }, ['/target/body']],
    [{ body: { template: 5 } }, ['/target/body/template']],
    [{ body: { contentType: 'text/plain' } }, ['/target/body/template']],
    [{ body: { template: '{{nope}}' } }, ['/target/body/template']],
    [{ body: { template: '{{runId}} and more' } }, ['/target/body/template']],
    [{ body: { template: 'x', contentType: 'nonsense' } }, ['/target/body/contentType']],
    [{ body: { template: 'x', contentType: 'text/plain', more: 1 } }, ['/target/body/more']],
    [{ body: { template: 'x'.repeat(65_537), contentType: 'text/plain' } }, ['/target/body/template']],
    [{ body: { template: 'é'.repeat(32_769), contentType: 'text/plain' } }, ['/target/body/template']],
    [{ body: 'payload', method: 'GET' }, ['/target/body']],
    [{ body: { template: '1' }, method: 'HEAD' }, ['/target/body']],
    [{ body: { template: '1' }, headers: { 'content-Type': 'text/plain' } }, ['/target/headers']],
  ])('%j is refused', async (target, paths) => {
    const answer = await put('bad', target);
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
    expect((await api.call('GET', '/api/v1/schedules/bad')).status).toBe(404);
  });

  test('that is longer than 1 MiB with the payload is refused, of a schedule and of a one-off run', async () => {
    const body = { template: '{{payload}}'.repeat(20), contentType: 'text/plain' };
    const definition = { ...SCHEDULE, payload: 'x'.repeat(60_000), target: { ...TARGET, body } };
    const refused = await api.call('PUT', '/api/v1/schedules/long', definition);
    expect([refused.status, faultPaths(refused)]).toEqual([400, ['/target/body/template']]);
    expect(errorsOf(refused)[0]?.message).toBe('is longer than 1 MiB with this payload');
    expect((await api.call('GET', '/api/v1/schedules/long')).status).toBe(404);
    const { target, payload } = definition;
    const run = await api.call('POST', '/api/v1/runs', { target, payload });
    expect([run.status, faultPaths(run)]).toEqual([400, ['/target/body/template']]);
    expect((await api.call('PUT', '/api/v1/schedules/long', { ...definition, payload: 'x' })).status).toBe(201);
    const longer = await api.call('PATCH', '/api/v1/schedules/long', { payload });
    expect([longer.status, faultPaths(longer)]).toEqual([400, ['/target/body/template']]);
  });

  test('that a payload of a fire makes longer is refused at the call, and neither a run nor the key is stored', async () => {
    await put('fired', { body: { template: '{{payload}}'.repeat(20), contentType: 'text/plain' } });
    const fire = (payload?: string) =>
      api.call('POST', '/api/v1/schedules/fired/fire', { payload }, { 'idempotency-key': 'k' });
    const refused = await fire('x'.repeat(60_000));
    expect([refused.status, errorsOf(refused)]).toEqual([
      400,
      [{ path: '/payload', message: 'cannot be sent: the body would be longer than 1 MiB' }],
    ]);
    const runs = await api.call('GET', '/api/v1/runs?scheduleId=fired');
    expect(runs.body).toMatchObject({ items: [] });
    expect((await fire('x')).status).toBe(202);
  });

  test('of a method that carries none may be the default', async () => {
    expect((await put('get', { method: 'GET', body: 'envelope' })).status).toBe(201);
    expect(faultPaths(await patch('get', { body: 'payload' }))).toEqual(['/target/body']);
  });

  test('of a one-off run is checked in the same way', async () => {
    const run = (body: unknown) => api.call('POST', '/api/v1/runs', { target: { ...TARGET, body } });
    expect(faultPaths(await run({ template: '[' }))).toEqual(['/target/body/template']);
    expect((await run({ template: '[]' })).status).toBe(201);
  });
});

describe('the rules of a target', () => {
  const rules = {
    succeed: [409, '3xx'],
    retry: ['400-404'],
    fail: [500],
    require: { pointer: '/ok', equals: [1, null] },
    otherwise: 'fail',
  };

  test('are answered as they were given, and the answer of GET can be sent back', async () => {
    const created = await put('o', { outcome: rules });
    expect(targetOf(created)['outcome']).toEqual(rules);
    expect((await put('o', targetOf(created))).body['version']).toBe(1);
    const contains = await patch('o', { outcome: { require: null, succeed: null } });
    expect(targetOf(contains)['outcome']).toEqual({ ...rules, require: null, succeed: [] });
    const other = await patch('o', { outcome: { require: { contains: 'ok' } } });
    expect(targetOf(other)['outcome']).toMatchObject({ require: { contains: 'ok' } });
    expect(targetOf(await patch('o', { outcome: null }))['outcome']).toBeNull();
  });

  test('keep the digits of `equals`, wherever they were sent', async () => {
    const text = '{"pointer":"/n","equals":{"n":[1.10,1e2,12345678901234567890],"m":9007199254740993}}';
    const target = `{"type":"http","url":"http://127.0.0.1:9","outcome":{"require":${text}}}`;
    const answerOf = async (method: string, path: string, sent?: string) =>
      (await api.call(method, `/api/v1${path}`, sent)).text;
    const definition = `"cron":"0 0 1 1 *","target":${target}`;
    const shown = [
      await answerOf('PUT', '/schedules/digits', `{${definition}}`),
      await answerOf('GET', '/schedules/digits'),
      await answerOf('PATCH', '/schedules/digits', `{"target":{"outcome":{"require":${text}}}}`),
      await answerOf('GET', '/schedules/digits/versions'),
    ];
    for (const answer of shown) expect(answer).toContain(text);
    expect(JSON.parse(shown[2] ?? '')).toMatchObject({ version: 1 });
    const other = definition.replace('1.10', '1.100');
    const diff = await answerOf('POST', '/schedules/batch', `{"dryRun":true,"items":[{"id":"digits",${other}}]}`);
    expect(diff).toContain('"path":"/target/outcome/require/equals/n"');
    expect(diff).toContain('1.100');
  });

  test('have defaults', async () => {
    expect(targetOf(await put('d', { outcome: {} }))['outcome']).toEqual({
      succeed: [],
      retry: [],
      fail: [],
      require: null,
      otherwise: null,
    });
    expect(targetOf(await put('d', { outcome: { require: { pointer: '', equals: null } } }))['outcome']).toMatchObject({
      require: { pointer: '', equals: null },
    });
  });

  test('with a status that is there twice are refused, at the place of the second', async () => {
    const answer = await put('twice', { outcome: { succeed: [404, '404'], fail: ['4xx', 500] } });
    expect(errorsOf(answer)).toEqual([
      { path: '/target/outcome/succeed/1', message: 'has a status that succeed/0 has too' },
      { path: '/target/outcome/fail/0', message: 'has a status that succeed/0 has too' },
    ]);
  });

  test.each([
    [{ succeed: ['1xx', 99, 200.5, '404-400'] }, ['succeed/0', 'succeed/1', 'succeed/2', 'succeed/3']],
    [{ succeed: 200 }, ['succeed']],
    [{ require: { pointer: 'ok', equals: 1 } }, ['require/pointer']],
    [{ require: { pointer: '/ok' } }, ['require']],
    [{ require: {} }, ['require']],
    [{ require: { contains: '' } }, ['require/contains']],
    [{ require: { contains: 'x', pointer: '/x', equals: 1 } }, ['require']],
    [{ otherwise: 'pause' }, ['otherwise']],
    [{ expect: [] }, ['expect']],
  ])('%j is refused', async (outcome, paths) => {
    const answer = await put('bad-rules', { outcome });
    expect([answer.status, faultPaths(answer)]).toEqual([400, paths.map((path) => `/target/outcome/${path}`)]);
  });
});
