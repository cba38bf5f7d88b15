// @module-tag long
import { expect, it } from 'vitest';
import { daemonHere } from '../../support/daemon-here.ts';
import { readyDaemon } from '../../support/daemon.ts';
import { databaseOfTest, receiverOfTest } from '../../support/of-test.ts';
import type { AnyDaemon } from '../../support/programs.ts';
import { until } from '../../support/until.ts';

const set = async (daemon: AnyDaemon, body: object) =>
  expect((await daemon.call('POST', '/api/v1/maintenance', body)).status).toBe(200);
const warned = (daemon: AnyDaemon, pattern: RegExp) =>
  until(async () => {
    const { status, body } = await daemon.call('GET', '/readyz');
    const { warnings } = body as { warnings: string[] };
    return status === 200 && warnings.some((warning) => pattern.test(warning)) ? true : null;
  });
const gauge = async (daemon: AnyDaemon) =>
  /^firelock_maintenance (\d)$/m.exec(String((await daemon.call('GET', '/metrics')).body))?.[1];
const items = (body: unknown) => (body as { items: Record<string, unknown>[] }).items;

it('maintenance is in force on every daemon, outlives the one that began it, and ends for all, by itself too', async () => {
  const database = await databaseOfTest();
  const receiver = await receiverOfTest();
  const [asked, other] = await Promise.all([readyDaemon(database.url), daemonHere(database.url)]);
  const target = { type: 'http', url: receiver.url };
  const put = (id: string, given: object) => other.call('PUT', `/api/v1/schedules/${id}`, { target, ...given });
  await put('beat', { everySeconds: 1 });
  await put('moved', { everySeconds: 1, graceSeconds: 3600 });
  await receiver.arrived(2);

  await set(asked, { on: true, dispatch: 'hold', reason: 'disks' });
  await warned(other, /^maintenance since .*, until it is ended: .* no run is handed off$/);
  expect(await gauge(other)).toBe('1');
  await other.logged(/^maintenance: .*no run is handed off$/);
  asked.signal('SIGKILL');
  await asked.exited;
  const again = await daemonHere(database.url);
  await warned(again, /^maintenance since/);

  await put('by-hand', { cron: '0 0 1 1 *' });
  await again.call('POST', '/api/v1/schedules/by-hand/fire');
  await again.call('POST', '/api/v1/runs', { target: { type: 'pull', queue: 'work' } });
  const claim = { workerId: 'w', waitSeconds: 0 };
  expect(items((await other.call('POST', '/api/v1/queues/work/claim', claim)).body)).toEqual([]);
  // Something of it is due by now, and this edit moves its fire times.
  await until(async () => {
    const { body } = await other.call('GET', '/api/v1/schedules/moved/occurrences');
    return items(body).some(({ state }) => state === 'upcoming') || null;
  });
  await other.call('PATCH', '/api/v1/schedules/moved', { everySeconds: 3600 });
  const held = items((await other.call('GET', '/api/v1/schedules/moved/runs?status=waiting')).body);
  expect(held).toMatchObject([{ trigger: 'catchUp', status: 'waiting' }]);
  // Attempts that were under way when it began, at both of the daemons, have arrived by now.
  const count = receiver.arrivals.length;
  const waiting = other.call('POST', '/api/v1/queues/work/claim', { ...claim, waitSeconds: 60 });

  const endedAt = Date.now();
  await set(again, { on: false });
  expect(items((await waiting).body)).toHaveLength(1);
  const fired = (id: string, trigger: string) =>
    receiver.arrivals.slice(count).find(({ body }) => body.scheduleId === id && body.trigger === trigger);
  await until(() => (fired('by-hand', 'manual') && fired('moved', 'catchUp') && fired('beat', 'schedule')) ?? null);
  for (const { at } of receiver.arrivals.slice(count)) expect(at).toBeGreaterThanOrEqual(endedAt);
  await other.logged(/^no maintenance: /);
  expect(await gauge(other)).toBe('0');
  const { body } = await other.call('GET', '/api/v1/schedules/beat/occurrences');
  expect(items(body).filter(({ reason }) => reason === 'unknown')).toEqual([]);

  const untilIn = (ms: number) => set(other, { on: true, until: new Date(Date.now() + ms).toISOString() });
  await untilIn(3_600_000);
  await until(async () => (await gauge(again)) === '1' || null);
  await untilIn(1_500);
  await until(async () => (await gauge(again)) === '0' || null);
  const ended = () => again.log().filter(({ msg }) => msg.startsWith('no maintenance: ')).length;
  await until(() => ended() === 2 || null);
});
