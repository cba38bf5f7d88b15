import { describe, expect, test, onTestFinished } from 'vitest';
import { sql } from 'drizzle-orm';
import { scheduledForOf } from '../../../src/core/runs/run.ts';
import { opened } from '../../support/secrets.ts';
import { type Answer, faultPaths, quietApi, SCHEDULE, startApi, detailOf } from '../api.ts';
import { ATTACK } from '../../support/runner/attack.ts';
import { countOpenRuns } from '../../../src/store/reports/gauges.ts';
import { leaveMessages } from '../../support/notifiers.ts';
import { storeOfTest } from '../../support/of-test.ts';

const api = quietApi({ sendsMail: true });
const mailless = quietApi();
const bounded = quietApi({ sendsMail: true, mailToDomains: ['example.com'] });

const at = (id: string) => `/api/v1/notifiers/${id}`;
const put = (id: string, body: object, headers?: Record<string, string>) => api.call('PUT', at(id), body, headers);
const textOf = (value: unknown) => value as string;
const refused = (answer: Answer) => [answer.status, faultPaths(answer)];

const HOOK = { type: 'http', url: 'https://hooks.example/x' };
const WEBHOOK = { channel: { type: 'webhook', target: HOOK } };
const SLACK = { channel: { type: 'slack', target: HOOK } };
const ANSWERED = {
  ...{ ...HOOK, connection: null, method: 'POST', headers: {}, body: 'envelope', outcome: null },
  ...{ secret: null, lookup: null, cancel: null },
};
const EVERY_KIND = [
  ...['failed', 'late', 'unstarted', 'slow', 'tooFast', 'result', 'missed', 'paused', 'error', 'calendar'],
];

async function storedTarget(id: string) {
  const [row] = await api.sql<{ uid: string; definition: { target: unknown } }[]>`
    SELECT n.uid, v.definition FROM notifiers n
    JOIN schedule_versions v ON v.schedule_uid = n.uid AND v.version = n.version WHERE n.id = ${id}`;
  if (!row) throw new Error(`there is no notifier ${id}`);
  return { text: JSON.stringify(row.definition), opened: opened(row.uid, row.definition.target), row };
}

test('a notifier is stored as the definition of its runs', async () => {
  await put('first', WEBHOOK);
  const { body } = await put('first', { channel: { type: 'email', to: ['ops@example.com'] } });
  expect(body['version']).toBe(2);
  const { row } = await storedTarget('first');
  expect(row.definition).toEqual({
    target: { type: 'email', to: ['ops@example.com'] },
    retry: { maxAttempts: 1000, minBackoffSeconds: 10, maxBackoffSeconds: 900 },
    ...{
      timeoutSeconds: 30,
      delivery: 'atLeastOnce',
      completion: 'response',
      completionTimeoutSeconds: 3600,
    },
  });
});

test('mail goes to addresses in ASCII, where it may go', async () => {
  const mail = (to: string[]) => ({ channel: { type: 'email', to } });
  const { body } = await put('abroad', mail(['ops@b\u00fccher.example']));
  expect(body['channel']).toMatchObject({ to: ['ops@xn--bcher-kva.example'] });
  expect(refused(await put('abroad', mail(['\u00f6ps@example.com', 'ops@exa\u00a0mple.com'])))).toEqual([
    400,
    ['/channel/to/0', '/channel/to/1'],
  ]);
  const elsewhere = mail(['ops@example.com', 'ops@elsewhere.example']);
  expect(refused(await bounded.call('PUT', at('bounded'), elsewhere))).toEqual([422, ['/channel/to/1']]);
  expect((await bounded.call('GET', at('bounded'))).status).toBe(404);
});

describe('faults', () => {
  test('a channel that has a form of its own takes no other body, and needs one', async () => {
    const channel = (type: string, more: object) => ({
      channel: { type, target: { ...HOOK, ...more }, ...(type === 'pagerduty' && { routingKey: 'R1' }) },
    });
    for (const type of ['slack', 'pagerduty']) {
      const [body, method] = await Promise.all([
        put('formless', channel(type, { body: { template: '{}' } })),
        put('formless', channel(type, { method: 'GET' })),
      ]);
      expect([refused(body), refused(method)]).toEqual([
        [400, ['/channel/target/body']],
        [400, ['/channel/target/method']],
      ]);
    }
    const own = {
      body: { template: '{"what": {{payload/alerts/0/scheduleId}}}', contentType: 'application/json' },
    };
    expect((await put('formed', channel('webhook', own))).status).toBe(201);
  });

  test('mail is refused where firelock has no mail server', async () => {
    const body = { channel: { type: 'email', to: ['ops@example.com'] } };
    const answer = await mailless.call('PUT', at('mail'), body);
    expect(refused(answer)).toEqual([400, ['/channel/type']]);
    expect(answer.text).toContain('set FIRELOCK_SMTP_URL and FIRELOCK_MAIL_FROM');
  });

  test('what it names must be there, and its fallback must not lead back to it', async () => {
    const named = { ...HOOK, url: '/x', connection: 'nowhere' };
    const answer = await put('naming', { channel: { type: 'slack', target: named }, fallback: 'nobody' });
    expect(refused(answer)).toEqual([422, ['/channel/target/connection', '/fallback']]);
    expect(detailOf(await put('self', { ...SLACK, fallback: 'self' }))).toEqual([
      ...[422, '/fallback names the notifier itself'],
    ]);
    await put('chain-a', SLACK);
    await put('chain-b', { ...SLACK, fallback: 'chain-a' });
    await put('chain-c', { ...SLACK, fallback: 'chain-b' });
    expect(detailOf(await put('chain-a', { ...SLACK, fallback: 'chain-c' }))).toEqual([
      ...[422, '/fallback makes a cycle: chain-a → chain-c → chain-b → chain-a'],
    ]);
  });

  test('of two calls that would close a circle together, one is refused', async () => {
    await put('pair-a', SLACK);
    await put('pair-b', SLACK);
    const both = await Promise.all([
      put('pair-a', { ...SLACK, fallback: 'pair-b' }),
      put('pair-b', { ...SLACK, fallback: 'pair-a' }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 422]);
  });
});

describe('secret values', () => {
  const TARGET = { ...HOOK, headers: { Authorization: 'Bearer canary' }, secret: `whsec_${'A'.repeat(32)}` };
  const PAGED = {
    type: 'pagerduty',
    target: { ...HOOK, headers: { 'X-Key': 'canary-2' } },
    routingKey: 'canary-3',
  };

  test('they are stored encrypted, masked in answers, and kept by ***', async () => {
    const made = await put('secret', { channel: { type: 'webhook', target: TARGET } });
    expect(made.body['channel']).toMatchObject({
      target: { headers: { Authorization: '***' }, secret: '***' },
    });
    const stored = await storedTarget('secret');
    expect(stored.text).not.toMatch(/canary|AAAA/);
    expect(stored.opened).toMatchObject({ headers: TARGET.headers, secret: TARGET.secret });
    const asSlack = { ...made.body, channel: { ...(made.body['channel'] as object), type: 'slack' } };
    expect((await put('secret', asSlack)).body['version']).toBe(2);
    expect((await storedTarget('secret')).opened).toMatchObject({ headers: TARGET.headers });
  });

  test('a routing key too, which goes to PagerDuty unless another URL is given', async () => {
    const made = await put('paged', { channel: PAGED });
    expect(made.body['channel']).toMatchObject({
      routingKey: '***',
      target: { headers: { 'X-Key': '***' } },
    });
    const stored = await storedTarget('paged');
    expect(stored.text).not.toContain('canary');
    expect(stored.opened).toMatchObject({
      headers: { 'X-Key': 'canary-2' },
      body: { secrets: { routingKey: 'canary-3' } },
    });
    expect((await put('paged', made.body)).body['version']).toBe(1);
    const plain = await put('paged-plain', { channel: { type: 'pagerduty', routingKey: 'R1' } });
    expect(plain.body['channel']).toMatchObject({
      target: { url: 'https://events.pagerduty.com/v2/enqueue' },
    });
  });

  test('*** keeps none for another origin, and none that is not there', { tags: [ATTACK] }, async () => {
    await put('moved', { channel: PAGED });
    const masked = { ...PAGED, target: { ...PAGED.target, headers: { 'X-Key': '***' } }, routingKey: '***' };
    const elsewhere = { ...masked, target: { ...masked.target, url: 'https://evil.example/x' } };
    expect(refused(await put('moved', { channel: elsewhere }))).toEqual([
      400,
      ['/channel/routingKey', '/channel/target/headers/X-Key'],
    ]);
    expect((await put('moved', { channel: { type: 'slack', target: masked.target } })).status).toBe(200);
    expect(refused(await put('moved', { channel: masked }))).toEqual([400, ['/channel/routingKey']]);
    expect(refused(await put('never-there', { channel: masked }))).toEqual([
      400,
      ['/channel/routingKey', '/channel/target/headers/X-Key'],
    ]);
  });
});

describe('a connection', () => {
  const connected = (headers: object) => ({
    channel: { type: 'slack', target: { type: 'http', connection: 'chat', url: '/hook', headers } },
  });
  const connection = (body: object) => api.call('PUT', '/api/v1/connections/chat', body);

  test('that a notifier names is not deleted, nor moved while the notifier has secret values', async () => {
    await connection({ url: 'https://chat.example' });
    await put('connected', connected({ 'X-Key': 'k' }));
    expect(detailOf(await api.call('DELETE', '/api/v1/connections/chat'))).toEqual([
      ...[409, 'the connection is named by notifiers connected'],
    ]);
    expect(detailOf(await connection({ url: 'https://other.example' }))[0]).toBe(409);
    const run = await api.call('POST', `${at('connected')}/test`);
    await put('connected', SLACK);
    expect(detailOf(await api.call('DELETE', '/api/v1/connections/chat'))).toEqual([
      ...[409, `the connection is named by open runs ${textOf(run.body['id'])}`],
    ]);
    await api.call('DELETE', at('connected'));
    expect((await connection({ url: 'https://other.example' })).status).toBe(200);
    expect((await api.call('DELETE', '/api/v1/connections/chat')).status).toBe(204);
  });
});

describe('a test', () => {
  test('of a notifier that there is not is 404', async () => {
    expect((await api.call('POST', `${at('absent')}/test`)).status).toBe(404);
  });

  test('is a message that is recorded at once, and waits for nothing', async () => {
    await put('tested', { ...SLACK, enabled: false });
    const before = api.woken();
    const answer = await api.call('POST', `${at('tested')}/test`);
    const id = textOf(answer.body['id']);
    expect([answer.status, answer.headers.get('location')]).toEqual([202, `/api/v1/runs/${id}`]);
    expect(api.woken()).toBe(before + 1);
    expect(answer.body).toMatchObject({
      ...{
        trigger: 'notify',
        status: 'pending',
        notifierId: 'tested',
        scheduleId: null,
        scheduleVersion: null,
      },
      payload: { text: '*Test of the notifier tested: it works*' },
    });
    expect(scheduledForOf(id)).toBe(Date.parse(textOf(answer.body['scheduledFor'])));
    const rows = await api.sql`SELECT r.lane, r.ready, m.event, m.gathers_until, m.fallback_for, m.notifier_id
      FROM messages m JOIN runs r ON r.id = m.run_id WHERE r.id = ${id}`;
    expect([...rows]).toEqual([
      ...[
        {
          lane: 'notify hooks.example',
          ready: true,
          event: 'test',
          gathers_until: null,
          fallback_for: null,
          notifier_id: 'tested',
        },
      ],
    ]);
    const read = await api.call('GET', `/api/v1/runs/${id}`);
    expect(read.body['target']).toEqual(ANSWERED);
  });

  test('is refused from the eleventh within a minute on, and that of another notifier is not', async () => {
    await put('often', SLACK);
    for (let sent = 0; sent < 10; sent += 1) expect((await api.call('POST', `${at('often')}/test`)).status).toBe(202);
    const refusal = await api.call('POST', `${at('often')}/test`);
    expect(detailOf(refusal)).toEqual([429, 'too many tests of this notifier']);
    expect(Number(refusal.headers.get('retry-after'))).toBeOneOf(Array.from({ length: 60 }, (_, index) => index + 1));
    await put('seldom', SLACK);
    expect((await api.call('POST', `${at('seldom')}/test`)).status).toBe(202);
    await api.sql`UPDATE messages SET created_at = created_at - interval '1 minute' WHERE notifier_id = 'often'`;
    expect((await api.call('POST', `${at('often')}/test`)).status).toBe(202);
  });

  test('of PagerDuty shows where it goes, and no routing key', async () => {
    await put('paging', { channel: { type: 'pagerduty', routingKey: 'canary' } });
    const { body } = await api.call('POST', `${at('paging')}/test`);
    const read = await api.call('GET', `/api/v1/runs/${textOf(body['id'])}`);
    expect(read.body['target']).toMatchObject({ body: { secrets: { routingKey: '***' } } });
    expect(read.text).not.toContain('canary');
    expect(read.body['payload']).toMatchObject({ event_action: 'trigger', payload: { severity: 'info' } });
  });
});

describe('a message that has ended', () => {
  const sent = async (id: string) => {
    const { body } = await api.call('POST', `${at(id)}/test`);
    const run = `/api/v1/runs/${textOf(body['id'])}`;
    await api.call('POST', `${run}/cancel`);
    return { retry: () => api.call('POST', `${run}/retry`) };
  };

  test('is opened again as it was written, whatever its notifier says now', async () => {
    await put('again', SLACK);
    const { retry } = await sent('again');
    await put('again', { channel: { type: 'pagerduty', routingKey: 'R1' } });
    const { body } = await retry();
    expect(body).toMatchObject({
      status: 'pending',
      payload: { text: '*Test of the notifier again: it works*' },
    });
    const [row] = await api.sql`SELECT schedule_version, lane FROM runs WHERE id = ${textOf(body['id'])}`;
    expect(row).toEqual({ schedule_version: 1, lane: 'notify hooks.example' });
  });

  test('is not, once its notifier is gone, or if it was never written', async () => {
    await put('gone', SLACK);
    const { retry } = await sent('gone');
    await api.sql`UPDATE history SET own_payload = NULL WHERE notifier_id = 'gone'`;
    expect(detailOf(await retry())).toEqual([409, 'the run was ended before its message was written']);
    await api.call('DELETE', at('gone'));
    await put('gone', SLACK);
    expect(detailOf(await retry())).toEqual([409, 'the notifier of the run was deleted: gone']);
  });

  test('takes no secret value to where its connection goes now', { tags: [ATTACK] }, async () => {
    await api.call('PUT', '/api/v1/connections/chat-2', { url: 'https://chat.example' });
    const target = { type: 'http', connection: 'chat-2', url: '/hook', headers: { 'X-Key': 'k' } };
    await put('carried', { channel: { type: 'webhook', target } });
    const { retry } = await sent('carried');
    await put('carried', SLACK);
    expect((await api.call('PUT', '/api/v1/connections/chat-2', { url: 'https://evil.example' })).status).toBe(200);
    expect(detailOf(await retry())).toEqual([
      ...[409, 'the connection chat-2 goes elsewhere now, and the run has header values of its own'],
    ]);
    await api.call('DELETE', '/api/v1/connections/chat-2');
    expect(detailOf(await retry())).toEqual([409, 'the connection of the run was deleted: chat-2']);
  });
});

describe('deletion', () => {
  test('ends the open messages, and forgets what it was told of', async () => {
    await put('deleted', WEBHOOK);
    const { body } = await api.call('POST', `${at('deleted')}/test`);
    const [other, alert] = ['01990000-0000-7000-8000-000000000001', '01990000-0000-7000-8000-000000000002'];
    await api.sql`INSERT INTO messages (run_id, notifier_id, event, gathers_until, created_at) VALUES (${other}, 'deleted', 'opened', now(), now())`;
    await api.sql`INSERT INTO message_alerts VALUES (${other}, ${alert})`;
    await api.sql`INSERT INTO alert_tellings VALUES (${alert}, 'deleted', NULL), (${alert}, 'other', NULL)`;
    expect((await api.call('DELETE', at('deleted'))).status).toBe(204);
    const run = await api.call('GET', `/api/v1/runs/${textOf(body['id'])}`);
    expect([run.body['status'], run.body['reason']]).toEqual(['abandoned', 'deleted']);
    const [left] = await api.sql`SELECT
      (SELECT count(*)::int FROM messages WHERE notifier_id = 'deleted') AS messages,
      (SELECT count(*)::int FROM message_alerts) AS alerts,
      (SELECT array_agg(notifier_id) FROM alert_tellings) AS told`;
    expect(left).toEqual({ messages: 1, alerts: 0, told: ['other'] });
  });
});

test('a dry run says what PUT would change, without secret values, and changes nothing', async () => {
  const channel = { type: 'webhook', target: { ...HOOK, headers: { 'X-Key': 'canary' } } };
  const dry = (body: object) => api.call('POST', `${at('dry')}/dry-run`, body);
  expect((await dry({ channel })).body).toEqual({ id: 'dry', change: 'created', fields: [] });
  expect((await api.call('GET', at('dry'))).status).toBe(404);
  await put('dry', { channel });
  expect((await dry({ channel })).body).toMatchObject({ change: 'unchanged' });
  const changed = await dry({
    channel: { ...channel, target: { ...channel.target, headers: { 'X-Key': 'canary-b' } } },
    on: ['late'],
  });
  expect(changed.body['fields']).toMatchObject([
    { path: '/on', before: EVERY_KIND, after: ['late'] },
    { path: '/channel/target/headers/X-Key', before: '***', after: '***' },
  ]);
  expect(changed.text).not.toContain('canary');
});

test('messages of notifiers are runs that say whose they are, and count in no figure of schedules', async () => {
  const store = await storeOfTest();
  const api = await startApi(store.url);
  onTestFinished(() => api.stop());
  await api.call('PUT', '/api/v1/schedules/job', SCHEDULE);
  const fired = await api.call('POST', '/api/v1/schedules/job/fire');
  expect(fired.body).toMatchObject({ trigger: 'manual', notifierId: null });
  const [id = ''] = await leaveMessages(store, { url: 'http://127.0.0.1:9', payload: '{"event":"opened"}' });

  const list = async (query: string) => {
    const { status, body } = await api.call('GET', `/api/v1/${query}`);
    expect(status).toBe(200);
    return body['items'];
  };
  const message = { id, name: null, scheduleId: null, scheduleVersion: null, notifierId: 'oncall' };
  expect(await list('runs?trigger=notify')).toMatchObject([{ ...message, payload: { event: 'opened' } }]);
  expect(await list('runs?trigger=notify&status=pending')).toMatchObject([message]);
  expect(await list('runs')).toHaveLength(2);
  expect(await list('runs?trigger=notify&scheduleId=job')).toEqual([]);
  expect((await api.call('GET', `/api/v1/runs/${id}`)).body).toMatchObject({
    ...message,
    target: { type: 'http' },
  });
  expect((await api.call('GET', '/api/v1/stats')).body).toMatchObject({ totalRuns: 1 });
  expect((await store.database.run(countOpenRuns)).values.byStatus).toMatchObject({ pending: 1 });

  // Whatever a worker says: its receiver alone knows.
  await store.rows(sql`UPDATE runs SET attempts = 1 WHERE id = ${id}`);
  for (const [word, body] of [
    ['complete', { status: 'succeeded' }],
    ['heartbeat', {}],
  ] as const)
    expect((await api.call('POST', `/api/v1/runs/${id}/${word}`, body)).status).toBe(409);
  expect((await api.call('POST', `/api/v1/runs/${id}/cancel`)).body).toMatchObject({ status: 'cancelled' });
  expect((await api.call('POST', `/api/v1/runs/${id}/retry`)).body).toMatchObject({
    status: 'pending',
    ...message,
  });
});
