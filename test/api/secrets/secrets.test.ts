import { describe, expect, test, onTestFinished } from 'vitest';
import type { HttpTarget, BodyTemplate } from '../../../src/core/schedules/schedule.ts';
import { createKeyRing } from '../../../src/core/secrets/key-ring.ts';
import { keyIdsIn } from '../../../src/core/schedules/target-secrets.ts';
import { opened, ringOf } from '../../support/secrets.ts';
import { type Answer, SCHEDULE, TARGET, faultPaths, startApi, quietApi, sharedApi } from '../api.ts';
import type { SecretFile } from '../../../src/core/secrets/sealed-values.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams } from '../access/support.ts';

const api = sharedApi();

const put = (id: string, target: object, on = api) =>
  on.call('PUT', `/api/v1/schedules/${id}`, { ...SCHEDULE, target: { ...TARGET, ...target } });
const patch = (id: string, target: object) => api.call('PATCH', `/api/v1/schedules/${id}`, { target });
const post = (body: object, on = api) => on.call('POST', '/api/v1/runs', { target: TARGET, ...body });
const targetIn = ({ body }: Answer) => body['target'] as unknown as HttpTarget<string>;
const secretOf = (fill: number, length = 32) => `whsec_${Buffer.alloc(length, fill).toString('base64')}`;
const [ONE, TWO, THREE] = [secretOf(1), secretOf(2), secretOf(3)];
const call = { url: 'https://status.example/{{runId}}', headers: { 'X-Key': 'canary-call' } };
const ALL = { headers: { 'X-Key': 'canary-header' }, secret: [ONE, TWO], lookup: call, cancel: call };

async function versionsOf(id: string) {
  return api.sql<{ uid: string; version: number; target: HttpTarget; text: string }[]>`
    SELECT schedule_uid AS uid, version, definition->'target' AS target, definition::text AS text
    FROM schedule_versions WHERE schedule_id = ${id} ORDER BY version`;
}
const storedSecret = async (id: string) => {
  const row = (await versionsOf(id)).at(-1);
  return row && (opened(row.uid, row.target) as HttpTarget<string>).secret;
};

describe('a secret value of a body', () => {
  const bodyOf = (secrets: object, template = '{"key": {{secret/key}}}') => ({ body: { template, secrets } });
  const storedBody = async (id: string) => {
    const row = (await versionsOf(id)).at(-1);
    return row && (opened(row.uid, row.target) as HttpTarget<string>).body;
  };

  test('is stored encrypted, answered masked, kept where it is sent back so, and sent nowhere else', async () => {
    const made = await put('body', bodyOf({ key: 'canary-body' }));
    expect([made.status, targetIn(made).body]).toEqual([
      201,
      { template: '{"key": {{secret/key}}}', contentType: 'application/json', secrets: { key: '***' } },
    ]);
    expect((await versionsOf('body')).map(({ text }) => text).join()).not.toContain('canary');
    expect((await put('body', bodyOf({ key: '***' }))).body['version']).toBe(1);
    await patch('body', bodyOf({ key: '***' }, 'other'));
    await patch('body', {
      body: { contentType: 'text/plain', template: '{{secret/key}} {{secret/Key}}', secrets: { Key: 'K' } },
    });
    expect(await storedBody('body')).toMatchObject({ secrets: { key: 'canary-body', Key: 'K' } });
    const moved = await patch('body', { url: 'https://elsewhere.example/' });
    expect([moved.status, faultPaths(moved)]).toEqual([400, ['/target/body/secrets/Key', '/target/body/secrets/key']]);
    const renamed = await patch('body', { body: { secrets: { key: null, renamed: '***' } } });
    expect(faultPaths(renamed)).toEqual(['/target/body/template']);
  });

  test('is refused with all faults, and no answer repeats it', async () => {
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'canary']));
    for (const [secrets, paths] of [
      [{ key: '***' }, ['/target/body/secrets/key']],
      [{ key: 5 }, ['/target/body/secrets/key']],
      [{ other: 'canary' }, ['/target/body/template']],
      [{ key: 'canary', 'a b': 'canary' }, ['/target/body/secrets/a b']],
      [{ ...many, key: 'canary' }, ['/target/body/secrets']],
    ] as const) {
      const answer = await put('bad-body', bodyOf(secrets));
      expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
      expect(answer.text).not.toContain('canary');
    }
  });
});

describe('a secret', () => {
  test('is stored encrypted, and answered masked: one, two or none', async () => {
    expect(targetIn(await put('s', { secret: ONE })).secret).toBe('***');
    expect(await storedSecret('s')).toBe(ONE);
    expect(targetIn(await put('s', { secret: [ONE, TWO] })).secret).toEqual(['***', '***']);
    expect(await storedSecret('s')).toEqual([ONE, TWO]);
    expect(targetIn(await put('s', {})).secret).toBeNull();
    const texts = (await versionsOf('s')).map(({ text }) => text).join();
    for (const secret of [ONE, TWO]) expect(texts).not.toContain(secret.slice(6, 20));
  });

  test.each<[unknown, string[]]>([
    ['canary-secret', ['/target/secret']],
    [secretOf(1, 23), ['/target/secret']],
    [[ONE, 'canary-secret'], ['/target/secret/1']],
    [
      ['canary-a', 'canary-b'],
      ['/target/secret/0', '/target/secret/1'],
    ],
    [[ONE], ['/target/secret']],
    [[ONE, TWO, THREE], ['/target/secret']],
    [[ONE, ONE], ['/target/secret/1']],
    [[ONE, 5], ['/target/secret/1']],
    [5, ['/target/secret']],
    [{ canary: 1 }, ['/target/secret']],
    ['***', ['/target/secret']],
    [['***', ONE], ['/target/secret/0']],
  ])('cannot be %j, and no answer repeats it', async (secret, paths) => {
    for (const answer of [await put('bad', { secret }), await post({ target: { ...TARGET, secret } })]) {
      expect([answer.status, faultPaths(answer)]).toEqual([400, paths]);
      expect(answer.text).not.toMatch(/canary|whsec_A/);
    }
  });

  test('is refused together with all other faults of the target, also in a PATCH', async () => {
    await put('together', {});
    const wrong = { secret: 'canary-secret', headers: { 'X-Firelock-User': 'canary', a: '{{canary}}' } };
    const answer = await patch('together', wrong);
    expect([answer.status, faultPaths(answer)]).toEqual([
      400,
      ['/target/headers/X-Firelock-User', '/target/headers/a', '/target/secret'],
    ]);
    expect(answer.text).not.toContain('canary');
    expect(faultPaths(await patch('together', { secret: 5 }))).toEqual(['/target/secret']);
  });

  test('that is sent back masked keeps the stored one in its place, also while one takes the other’s place', async () => {
    await put('keep', { secret: ONE });
    expect((await put('keep', { secret: '***' })).body['version']).toBe(1);
    await patch('keep', { secret: [TWO, '***'] });
    expect(await storedSecret('keep')).toEqual([TWO, ONE]);
    expect((await patch('keep', { secret: '***' })).body['version']).toBe(2);
    await patch('keep', { secret: ['***', THREE] });
    expect(await storedSecret('keep')).toEqual([TWO, THREE]);
    await patch('keep', { secret: TWO });
    expect(faultPaths(await patch('keep', { secret: ['***', '***'] }))).toEqual(['/target/secret/1']);
    expect(await storedSecret('keep')).toBe(TWO);
    const moved = await patch('keep', { url: 'https://evil.example/' });
    expect([moved.status, faultPaths(moved)]).toEqual([400, ['/target/secret']]);
    expect((await patch('keep', { url: 'https://example.com:443/other' })).status).toBe(200);
    expect(await storedSecret('keep')).toBe(TWO);
  });
});

test('the same texts sent again are no change, in a PUT, a PATCH, a batch and a dry run', async () => {
  const created = await put('same', ALL);
  expect(created.text).not.toContain('canary');
  expect((await put('same', ALL)).body['version']).toBe(1);
  expect((await patch('same', ALL)).body['version']).toBe(1);
  const items = [{ ...SCHEDULE, id: 'same', target: { ...TARGET, ...ALL, secret: [TWO, ONE] } }];
  const changes = async (dryRun: boolean) =>
    (await api.call('POST', '/api/v1/schedules/batch', { items, dryRun })).body['changes'] as unknown;
  const masked = ['***', '***'];
  expect(await changes(true)).toMatchObject([
    { change: 'updated', fields: [{ path: '/target/secret', before: masked, after: masked }] },
  ]);
  await changes(false);
  expect(await changes(true)).toMatchObject([{ change: 'unchanged', fields: [] }]);
});

test('a version that is put back masked keeps the present values, as long as the origins are the same', async () => {
  await put('back', ALL);
  await patch('back', { headers: { 'X-Key': 'newer' } });
  const versions = await api.call('GET', '/api/v1/schedules/back/versions');
  const first = versions.body['items']?.[1]?.['schedule'] as unknown as object;
  expect(JSON.stringify(versions.body)).not.toContain('canary');
  const again = await api.call('PUT', '/api/v1/schedules/back', { ...first, description: 'as it was' });
  expect(again.body['version']).toBe(3);
  const { uid, target } = (await versionsOf('back')).at(-1) ?? { uid: '', target: null };
  expect(opened(uid, target)).toMatchObject({ headers: { 'X-Key': 'newer' }, secret: [ONE, TWO] });
});

describe('without a key', () => {
  const keyless = sharedApi({ secrets: createKeyRing([]) }, api);
  const PATHS = [
    '/target/cancel/headers/X-Key',
    '/target/headers/X-Key',
    '/target/lookup/headers/X-Key',
    '/target/secret/0',
    '/target/secret/1',
  ];

  test('secret values are refused, each by its name, and nothing is stored', async () => {
    const id = 'keyless';
    const impossible = { cron: '0 0 31 2 *' };
    const target = { ...TARGET, ...ALL };
    const at = (prefix: string) => PATHS.map((path) => prefix + path);
    const refused: [Answer, string[]][] = [
      [await put(id, ALL, keyless), PATHS],
      [await keyless.call('PUT', `/api/v1/schedules/${id}`, { ...impossible, target }), ['/cron', ...PATHS]],
      [await post({ target }, keyless), PATHS],
      [await keyless.call('POST', '/api/v1/schedules/batch', { items: [{ id, ...SCHEDULE, target }] }), at('/items/0')],
      [
        await keyless.call('POST', '/api/v1/runs/batch', {
          items: [
            { ref: 'a', target: TARGET },
            { ref: 'b', target },
          ],
        }),
        at('/items/1'),
      ],
    ];
    for (const [answer, paths] of refused) {
      expect([answer.status, faultPaths(answer)]).toEqual([422, paths]);
      expect(answer.text).toContain('FIRELOCK_SECRET_KEYS');
      expect(answer.text).not.toContain('canary');
    }
    expect((await keyless.call('GET', `/api/v1/schedules/${id}`)).status).toBe(404);
    expect(await versionsOf(id)).toEqual([]);
  });

  test('a target that needs none is accepted, and a stored one can be kept, edited around and deleted', async () => {
    expect((await put('plain', {}, keyless)).status).toBe(201);
    const { text } = await put('stored', ALL);
    expect((await keyless.call('PUT', '/api/v1/schedules/stored', text)).body['version']).toBe(1);
    const patched = await keyless.call('PATCH', '/api/v1/schedules/stored', { description: 'x' });
    expect([patched.status, patched.body['version']]).toEqual([200, 2]);
    expect((await keyless.call('DELETE', '/api/v1/schedules/stored')).status).toBe(204);
  });
});

test('an edit encrypts the values that it keeps with the first key; an unreadable one can be given anew, or kept', async () => {
  const newKey = `newer:${Buffer.alloc(32, 9).toString('base64')}`;
  const both = await startApi(api.databaseUrl, {
    secrets: ringOf(`${newKey},test:${Buffer.alloc(32, 7).toString('base64')}`),
  });
  const only = await startApi(api.databaseUrl, { secrets: ringOf(newKey) });
  const keysOf = async () => (await versionsOf('rotating')).map(({ target }) => new Set(keyIdsIn(target)));
  onTestFinished(() => both.stop());
  onTestFinished(() => only.stop());
  await put('rotating', ALL);
  const { body } = await only.call('PATCH', '/api/v1/schedules/rotating', { description: 'kept' });
  expect(body['version']).toBe(2);
  expect(await keysOf()).toEqual([new Set(['test']), new Set(['test'])]);
  expect((await put('rotating', ALL, both)).body['version']).toBe(3);
  await both.call('PATCH', '/api/v1/schedules/rotating', { description: 'moved' });
  expect((await keysOf())[3]).toEqual(new Set(['newer']));
  await put('rotating', ALL);
  expect((await put('rotating', ALL, only)).body['version']).toBe(6);
  expect((await keysOf())[5]).toEqual(new Set(['newer']));
});

describe('one-off runs', () => {
  const target = { ...TARGET, ...ALL };

  test('store their values encrypted, under an id that does not show whether a guess is right', async () => {
    const created = await post({ target });
    expect(created.status).toBe(201);
    const id = created.body['id'] as unknown as string;
    const shown = await api.call('GET', `/api/v1/runs/${id}`);
    expect(targetIn(shown)).toMatchObject({ headers: { 'X-Key': '***' }, secret: ['***', '***'] });
    const [row] = await api.sql<{ uid: string; target: HttpTarget }[]>`
      SELECT v.schedule_uid AS uid, v.definition->'target' AS target FROM schedule_versions v
      JOIN runs r ON r.schedule_uid = v.schedule_uid WHERE r.id = ${id}`;
    expect(opened(row?.uid ?? '', row?.target)).toMatchObject({ secret: [ONE, TWO], headers: ALL.headers });
    const again = await post({ target });
    const runs = await api.sql`SELECT DISTINCT schedule_uid FROM runs
      WHERE id IN (${id}, ${again.body['id'] as unknown as string})`;
    expect(runs).toHaveLength(1);
  });

  test('get the run of their key only with the same values, whichever key encrypts by now', async () => {
    const first = await post({ key: 'once', target });
    expect(await post({ key: 'once', target })).toMatchObject({
      status: 200,
      body: { id: first.body['id'] },
    });
    const other = await post({ key: 'once', target: { ...target, headers: { 'X-Key': 'canary-other' } } });
    expect([other.status, faultPaths(other)]).toEqual([422, ['/key']]);
    const newKey = `newer:${Buffer.alloc(32, 9).toString('base64')}`;
    const both = await startApi(api.databaseUrl, {
      secrets: ringOf(`${newKey},test:${Buffer.alloc(32, 7).toString('base64')}`),
    });
    onTestFinished(() => both.stop());
    const again = await post({ key: 'once', target }, both);
    expect([again.status, again.body['id']]).toEqual([200, first.body['id']]);
    const different = await post({ key: 'once', target: { ...target, secret: THREE } }, both);
    expect([different.status, faultPaths(different)]).toEqual([422, ['/key']]);
  });
});

describe('a file in the place of a value', () => {
  const { api, call, done } = twoTeams({ takesSecretFiles: true });
  const without = quietApi();

  const URL = 'https://chat.example/send';
  const targetOf = (secrets: object, rest: object = {}) => ({
    ...{ type: 'http', url: URL, body: { template: '{"key": {{secret/key}}}', secrets } },
    ...rest,
  });
  const scheduleOf = (secrets: object, rest: object = {}) => ({
    cron: '0 0 1 1 *',
    target: targetOf(secrets, rest),
  });
  const FILE = { key: { file: 'billing.chat' } };
  const put = (id: string, secrets: object, rest: object = {}) =>
    call('all', 'PUT', `/schedules/${id}`, scheduleOf(secrets, rest));
  const bodyIn = ({ body }: Answer) => (body['target'] as unknown as HttpTarget).body;
  const faultsIn = ({ status, body }: Answer) =>
    [status, (body['errors'] as unknown as { path: string; message: string }[]).map(({ path }) => path)] as const;

  async function storedFile(id: string): Promise<SecretFile | undefined> {
    const rows = await api.sql<{ body: BodyTemplate<SecretFile> }[]>`
    SELECT definition->'target'->'body' AS body FROM schedule_versions WHERE schedule_id = ${id} ORDER BY version DESC LIMIT 1`;
    return rows[0]?.body.secrets?.['key'];
  }

  describe('a value of a body that stands in a file', () => {
    test('is stored by its name, with a proof of who named it, and answered by its name', async () => {
      const made = await put('files', FILE);
      expect([made.status, bodyIn(made)]).toMatchObject([201, { secrets: FILE }]);
      expect(await storedFile('files')).toMatchObject({ file: 'billing.chat', seal: { keyId: 'test' } });
      expect((await put('files', FILE)).body['version']).toBe(1);
      const { body } = await call('all', 'GET', '/schedules/files');
      expect((await call('all', 'PUT', '/schedules/files', body)).body['version']).toBe(1);
      const patch = (target: object) => call('all', 'PATCH', '/schedules/files', { target });
      const template = { template: 'x {{secret/key}}', contentType: 'text/plain' };
      expect(bodyIn(await patch({ body: template }))).toMatchObject({ ...template, secrets: FILE });
      expect(bodyIn(await patch({ body: { secrets: { key: 'a value' } } }))).toMatchObject({
        secrets: { key: '***' },
      });
      expect(faultsIn(await put('files', { key: { file: '../x' } }))).toEqual([400, ['/target/body/secrets/key/file']]);
      expect(bodyIn(await patch({ body: { secrets: { key: { file: 'other' } } } }))).toMatchObject({
        secrets: { key: { file: 'other' } },
      });
      expect(faultsIn(await put('files', { key: '***' }))).toEqual([400, ['/target/body/secrets/key']]);
    });

    test('is refused where there is no directory, in each kind of call, and nothing is stored', async () => {
      for (const [method, path, body, at] of [
        ['PUT', '/schedules/none', scheduleOf(FILE), '/target'],
        ['POST', '/schedules/batch', { items: [{ id: 'none', ...scheduleOf(FILE) }] }, '/items/0/target'],
        ['POST', '/runs', { target: targetOf(FILE) }, '/target'],
        ['POST', '/runs/batch', { items: [{ ref: 'a', target: targetOf(FILE) }] }, '/items/0/target'],
        ['PUT', '/notifiers/none', { channel: { type: 'webhook', target: targetOf(FILE) } }, '/channel/target'],
      ] as const) {
        const answer = await without.call(method, `/api/v1${path}`, body);
        expect([path, ...faultsIn(answer)]).toEqual([path, 422, [`${at}/body/secrets/key`]]);
      }
      expect((await without.call('GET', '/api/v1/schedules/none')).status).toBe(404);
    });

    test('is known of a one-off run by its name: the same key with another file is another body', async () => {
      const run = (file: string) => call('all', 'POST', '/runs', { key: 'k', target: targetOf({ key: { file } }) });
      expect((await run('one')).status).toBe(201);
      expect((await run('one')).status).toBe(200);
      expect(faultsIn(await run('two'))).toEqual([422, ['/key']]);
    });

    test('goes nowhere else by its name alone, and without its proof is not kept', { tags: [ATTACK] }, async () => {
      await put('moved', FILE);
      expect(faultsIn(await put('moved', FILE, { url: 'https://evil.example/' }))).toEqual([
        400,
        ['/target/body/secrets/key'],
      ]);
      await api.sql`UPDATE schedule_versions SET definition = jsonb_set(definition, '{target,body,secrets,key,seal}', 'null')
      WHERE schedule_id = 'moved'`;
      const answer = await put('moved', FILE, { method: 'PUT' });
      expect(faultsIn(answer)).toEqual([400, ['/target/body/secrets/key']]);
      expect(answer.text).toContain('without a proof');
    });

    test(
      'is of the caller’s own files or of shared ones, or was named there by somebody else',
      { tags: [ATTACK] },
      async () => {
        const path = '/schedules/billing.files';
        const of = (file: string, rest: object = {}) => scheduleOf({ key: { file } }, rest);
        for (const file of ['ops/db-password', 'ops.token'])
          expect(faultsIn(await call('billing', 'PUT', path, of(file)))).toEqual([422, ['/target/body/secrets/key']]);
        await done('billing', 'PUT', path, of('billing.chat'));
        await done('billing', 'PUT', path, of('shared.chat'));
        await done('all', 'PUT', path, of('ops.chat'));
        await done('billing', 'PUT', path, { ...of('ops.chat'), description: 'mine' });
        const elsewhere = scheduleOf(
          { other: { file: 'ops.chat' } },
          { body: { template: '{{secret/other}}', secrets: { other: { file: 'ops.chat' } } } },
        );
        expect((await call('billing', 'PUT', path, elsewhere)).status).toBe(422);
        const oneOff = { key: 'billing.k', target: targetOf({ key: { file: 'ops.chat' } }) };
        expect((await call('billing', 'POST', '/runs', oneOff)).status).toBe(422);
      },
    );

    test('is named by no operator, who would have it sent to a host of his own', { tags: [ATTACK] }, async () => {
      for (const [path, body, at] of [
        ['/runs', { target: targetOf(FILE) }, '/target'],
        ['/runs/batch', { items: [{ ref: 'a', target: targetOf(FILE) }] }, '/items/0/target'],
      ] as const) {
        const answer = await call('caller', 'POST', path, body);
        expect(faultsIn(answer)).toEqual([422, [`${at}/body/secrets/key`]]);
        expect(answer.text).toContain('only an admin');
      }
      await done('caller', 'POST', '/runs', { target: targetOf({ key: 'a value' }) });
    });
  });
});
