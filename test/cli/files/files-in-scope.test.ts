import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newToken } from '../../api/access/support.ts';
import { type Api, SCHEDULE, startApi } from '../../api/api.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { firelock } from '../cli.ts';

const admin = newToken('the-admin', 'admin');
const billing = newToken('billing-ci', 'admin', null, ['billing.']);
let api: Api;
let folder: string;
beforeAll(async () => {
  api = await startApi(undefined, { apiTokens: [admin.known, billing.known] });
  folder = await mkdtemp(join(tmpdir(), 'firelock-file-'));
  const labels = { 'firelock.set': 'ours' };
  for (const id of ['billing.old', 'ops.a', 'shared.a']) await put(`schedules/${id}`, { ...SCHEDULE, labels });
  for (const id of ['ops.few', 'shared.few']) await put(`limits/${id}`, { maxRunning: 2 });
  for (const id of ['ops.days', 'shared.days']) await put(`calendars/${id}`, { dates: ['2090-05-01'] });
  await put('connections/ops.host', { url: 'https://example.com' });
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

async function put(path: string, body: unknown): Promise<void> {
  expect((await api.call('PUT', `/api/v1/${path}`, body, admin.headers)).status).toBe(201);
}

const as = ({ secret }: typeof admin, args: readonly string[]) =>
  firelock(args, { url: api.url, env: { FIRELOCK_TOKEN: secret } });

async function run(who: typeof admin, command: 'plan' | 'apply', text: string, ...more: string[]) {
  const path = join(folder, 'schedules.yaml');
  await writeFile(path, text);
  const { code, out, err } = await as(who, [command, path, '--no-json', ...more]);
  const lines = (said: string) => said.replaceAll(path, 'FILE').trimEnd().split('\n');
  return { code, out: lines(out), err: lines(err) };
}

const idsOf = async () => {
  const rows = await api.sql<{ id: string }[]>`SELECT id FROM schedules ORDER BY id`;
  return rows.map(({ id }) => id);
};

const FOREIGN = `
limits:
  - {id: ops.few, maxRunning: 100}
  - {id: billing.few, maxRunning: 1}
calendars:
  - {id: shared.days, dates: []}
connections:
  - {id: ops.host, url: "https://example.org"}
schedules:
  - {id: billing.a, cron: "@daily", limit: ops.few, target: {type: pull, queue: ops.q}}
  - {id: ops.a, cron: "@daily", target: {type: pull, queue: ops.q}}
  - {id: new.one, cron: "@daily", target: {type: pull, queue: billing.q}}
  - {id: billing.b, after: {scheduleId: "*"}, target: {type: pull, queue: billing.q}}
`;

test.each(['plan', 'apply'] as const)(
  '%s names everything of a file that is beyond the scope of its token, and changes nothing',
  { tags: [ATTACK] },
  async (command) => {
    const { code, err } = await run(billing, command, FOREIGN);
    const beyond = 'is beyond the scope of your token, which is billing.';
    expect([code, ...err]).toEqual([
      1,
      expect.stringContaining('nothing was applied; FILE has errors:'),
      `FILE:3: limit ops.few: ${beyond}`,
      `FILE:6: calendar shared.days: ${beyond}`,
      `FILE:8: connection ops.host: ${beyond}`,
      'FILE:10: schedule billing.a, /target/queue: is outside your scope (billing.)',
      'FILE:10: schedule billing.a, /limit: names a limit that does not exist: ops.few',
      `FILE:11: schedule ops.a: ${beyond}`,
      `FILE:12: schedule new.one: ${beyond}`,
      'FILE:13: schedule billing.b, /after/scheduleId: is outside your scope (billing.)',
    ]);
    expect(await idsOf()).toEqual(['billing.old', 'ops.a', 'shared.a']);
    const limits = await api.sql`SELECT id, max_running FROM limits ORDER BY id`;
    expect(limits).toMatchObject([{ id: 'ops.few', max_running: 2 }, { id: 'shared.few' }]);
  },
);

const OWN = `
set: ours
limits:
  - {id: billing.few, maxRunning: 1}
calendars:
  - {id: billing.days, dates: [2090-05-01]}
schedules:
  - {id: billing.report, after: {scheduleId: billing.nightly}, target: {type: pull, queue: billing.q}}
  - {id: billing.all, after: {scheduleId: "billing.*"}, target: {type: pull, queue: shared.q}, limit: shared.few}
  - id: billing.nightly
    cron: "@daily"
    limit: billing.few
    exclude: {calendars: [billing.days, shared.days]}
    target: {type: pull, queue: billing.q}
`;

test(
  'apply makes what is in the scope, in one go; --prune removes what the file has no more, and nothing of others',
  { tags: [ATTACK] },
  async () => {
    const planned = await run(billing, 'plan', OWN, '--prune');
    expect(planned.out.join('\n')).toContain('- schedule billing.old');
    expect(planned.out.join('\n')).not.toMatch(/shared\.a|ops\./);
    const applied = await run(billing, 'apply', OWN, '--prune');
    expect([applied.code, applied.err]).toEqual([2, ['']]);
    expect(await idsOf()).toEqual(['billing.all', 'billing.nightly', 'billing.report', 'ops.a', 'shared.a']);
    expect((await run(billing, 'plan', OWN, '--prune')).code).toBe(0);
  },
);

test('an export has what its token may change: it can be applied as it is', async () => {
  const text = async (who: typeof admin) => (await as(who, ['export'])).out;
  const exported = await text(billing);
  expect(exported.match(/id: "?[\w.]+/g)).toEqual([
    ...['id: billing.few', 'id: billing.days'],
    ...['id: billing.all', 'id: billing.nightly', 'id: billing.report'],
  ]);
  expect((await run(billing, 'plan', exported)).code).toBe(0);
  expect(await text(admin)).toContain('ops.a');
});
