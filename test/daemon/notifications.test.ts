// @module-tag long
import { expect, test } from 'vitest';
import { daemonHere } from '../support/daemon-here.ts';
import { databaseOfTest, receiverOfTest } from '../support/of-test.ts';
import { SECRET_KEYS } from '../support/secrets.ts';
import { startSmtp } from '../support/smtp-server.ts';
import { until } from '../support/until.ts';

test('a schedule that breaks is told to every channel, and so is that it is well again', async () => {
  const [database, receiver, smtp] = await Promise.all([databaseOfTest(), receiverOfTest(), startSmtp()]);
  const daemon = await daemonHere(database.url, {
    FIRELOCK_SECRET_KEYS: SECRET_KEYS,
    FIRELOCK_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
    FIRELOCK_MAIL_FROM: 'cron@example.com',
    FIRELOCK_PUBLIC_URL: 'https://cron.example/',
  });
  const put = async (path: string, body: object) => {
    const { status } = await daemon.call('PUT', `/api/v1/${path}`, body);
    expect([path, status]).toEqual([path, expect.toSatisfy((code: number) => code < 300)]);
  };
  const http = (path: string) => ({ type: 'http', url: `${receiver.url}${path}` });
  const channels = {
    hook: { type: 'webhook', target: http('/hook') },
    chat: { type: 'slack', target: http('/chat') },
    pager: { type: 'pagerduty', target: http('/pager'), routingKey: 'R1' },
    mail: { type: 'email', to: ['ops@example.com'] },
  };
  for (const [id, channel] of Object.entries(channels)) await put(`notifiers/${id}`, { on: ['failed'], channel });

  const fired = { everySeconds: 86_400, retry: { maxAttempts: 1 } };
  await put('schedules/job', { ...fired, target: { type: 'http', url: 'http://169.254.169.254/' } });
  await daemon.call('POST', '/api/v1/schedules/job/fire');
  const bodiesAt = (path: string) =>
    receiver.arrivals.filter((one) => one.path === path).map(({ text }) => JSON.parse(text) as unknown);
  const told = (count: number) => () =>
    [bodiesAt('/hook'), bodiesAt('/chat'), bodiesAt('/pager'), smtp.mails].every((of) => of.length >= count) || null;
  await until(told(1));
  const error = 'the address of the target is blocked';
  expect(bodiesAt('/hook')).toMatchObject([
    { notifier: 'hook', event: 'opened', alerts: [{ scheduleId: 'job', error }] },
  ]);
  expect(bodiesAt('/chat')).toEqual([{ text: expect.stringContaining(`*job failed*`) as string }]);
  expect(bodiesAt('/pager')).toMatchObject([
    { routing_key: 'R1', event_action: 'trigger', payload: { source: 'job' } },
  ]);
  expect(smtp.mails[0]?.text).toContain('Subject: [firelock] job failed');

  await put('schedules/job', { ...fired, target: http('/job') });
  await daemon.call('POST', '/api/v1/schedules/job/fire');
  await until(told(2));
  const [opened, resolved] = bodiesAt('/pager') as { event_action: string; dedup_key: string }[];
  expect(resolved).toMatchObject({ event_action: 'resolve', dedup_key: opened?.dedup_key });
  expect(bodiesAt('/hook')[1]).toMatchObject({ event: 'recovered', alerts: [{ scheduleId: 'job' }] });
  expect(smtp.mails[1]?.text).toContain('Subject: [firelock] job succeeds again');
});
