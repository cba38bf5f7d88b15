import { describe, expect, test } from 'vitest';
import type { BodyTemplate, HttpTarget } from '../../../src/core/schedules/schedule.ts';
import type { SecretFile } from '../../../src/core/secrets/sealed-values.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { twoTeams } from '../access/two-teams.ts';
import { type Answer, quietApi } from '../api.ts';

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
  [
    status,
    (body['errors'] as unknown as { path: string; message: string }[]).map(({ path }) => path),
  ] as const;

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
    expect(faultsIn(await put('files', { key: { file: '../x' } }))).toEqual([
      400,
      ['/target/body/secrets/key/file'],
    ]);
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
    const run = (file: string) =>
      call('all', 'POST', '/runs', { key: 'k', target: targetOf({ key: { file } }) });
    expect((await run('one')).status).toBe(201);
    expect((await run('one')).status).toBe(200);
    expect(faultsIn(await run('two'))).toEqual([422, ['/key']]);
  });

  test(
    'goes nowhere else by its name alone, and without its proof is not kept',
    { tags: [ATTACK] },
    async () => {
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
    },
  );

  test(
    'is of the caller’s own files or of shared ones, or was named there by somebody else',
    { tags: [ATTACK] },
    async () => {
      const path = '/schedules/billing.files';
      const of = (file: string, rest: object = {}) => scheduleOf({ key: { file } }, rest);
      for (const file of ['ops/db-password', 'ops.token'])
        expect(faultsIn(await call('billing', 'PUT', path, of(file)))).toEqual([
          422,
          ['/target/body/secrets/key'],
        ]);
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

  test(
    'is named by no operator, who would have it sent to a host of his own',
    { tags: [ATTACK] },
    async () => {
      for (const [path, body, at] of [
        ['/runs', { target: targetOf(FILE) }, '/target'],
        ['/runs/batch', { items: [{ ref: 'a', target: targetOf(FILE) }] }, '/items/0/target'],
      ] as const) {
        const answer = await call('caller', 'POST', path, body);
        expect(faultsIn(answer)).toEqual([422, [`${at}/body/secrets/key`]]);
        expect(answer.text).toContain('only an admin');
      }
      await done('caller', 'POST', '/runs', { target: targetOf({ key: 'a value' }) });
    },
  );
});
