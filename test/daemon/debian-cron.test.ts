// @module-tag long
import { existsSync, readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { firelock } from '../cli/cli.ts';
import { type Daemon, readyDaemon } from '../support/daemon.ts';
import { CRON_MINUTE_MS, type DebianCron, debianCron } from '../support/debian-cron.ts';
import { databaseOfTest, receiverOfTest } from '../support/of-test.ts';
import { HUNG_AFTER_MS, until } from '../support/until.ts';

const SCALED = {
  FIRELOCK_HEARTBEAT_INTERVAL_SECONDS: '1',
  FIRELOCK_INSTANCE_TTL_SECONDS: '4',
  FIRELOCK_RECOVERY_INTERVAL_SECONDS: '1',
};
const LIMIT = { timeout: HUNG_AFTER_MS + 10 * CRON_MINUTE_MS };
const iso = (at: number) => new Date(at).toISOString();

/** What import-crontab makes of these commands, each every minute of this cron; answers the ids. */
async function observed(
  daemon: Daemon,
  cron: DebianCron,
  commands: readonly string[],
  ...args: string[]
): Promise<{ ids: string[]; crontab: string }> {
  const path = join(cron.folder, 'crontab.new');
  const lines = commands.map((command) => `* * * * * ${command}\n`);
  const words = ['import-crontab', '-', '--observe', '--crontab-out', path, ...args];
  const { code, err, out } = await firelock(words, { url: daemon.url, input: lines.join('') });
  expect([code, err]).toEqual([0, expect.stringContaining('applied')]);
  const ids = (parse(out) as { schedules: { id: string }[] }).schedules.map(({ id }) => id);
  const minute = { cron: null, timezone: null, everySeconds: CRON_MINUTE_MS / 1000 };
  const timing = { ...(CRON_MINUTE_MS === 60_000 ? {} : minute), startAt: iso(cron.firstMinute()) };
  for (const id of ids) {
    const patch = { ...timing, completionTimeoutSeconds: Math.floor((CRON_MINUTE_MS / 1000) * (5 / 6)) };
    expect((await daemon.call('PATCH', `/api/v1/schedules/${id}`, patch)).status).toBe(200);
  }
  return { ids, crontab: await readFile(path, 'utf8') };
}

const linesIn = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0);

interface Message {
  event: string;
  alerts: { scheduleId: string; kind: string; error: string | null }[];
}

test(
  'of the jobs of a cron one is taken out, one fails and one hangs: each is told once for what it is, and so it is counted',
  LIMIT,
  async (context) => {
    const cron = await debianCron(context);
    const [database, receiver] = await Promise.all([databaseOfTest(), receiverOfTest()]);
    const daemon = await readyDaemon(database.url, SCALED);
    const gate = join(cron.folder, 'gate');
    await writeFile(gate, '');
    const ran = join(cron.folder, 'ran');
    const commands = [
      `echo ran >> ${ran}`,
      'read why; echo "$why" >&2; exit 3%no space left: 100\\%',
      `while [ -e ${gate} ]; do sleep 0.2; done`,
    ];
    const { ids, crontab } = await observed(daemon, cron, commands);
    const [stops = '', fails = '', hangs = ''] = ids;
    for (const id of ids) {
      const channel = { type: 'webhook', target: { type: 'http', url: `${receiver.url}/${id}` } };
      const put = await daemon.call('PUT', `/api/v1/notifiers/${id}`, {
        ...{ on: ['failed'], filter: { ids: [id] }, channel },
      });
      expect(put.status).toBe(201);
    }
    await cron.install(crontab);
    await cron.start();
    await until(() => (linesIn(ran) > 0 ? true : null));
    await cron.install(crontab.split('\n').slice(1).join('\n'));

    await receiver.arrived(3);
    const told = receiver.arrivals.map(({ path, text }) => [path, JSON.parse(text) as Message] as const);
    const messages = Object.fromEntries(told);
    const opened = (scheduleId: string, words: RegExp) => ({
      event: 'opened',
      alerts: [{ scheduleId, kind: 'failed', error: expect.stringMatching(words) as string }],
    });
    expect(messages).toMatchObject({
      [`/${stops}`]: opened(stops, /^its job reported nothing by 20/),
      [`/${fails}`]: opened(fails, /^the job ended with exit code 3$/),
      [`/${hangs}`]: opened(hangs, /^its job has begun, and reported no end by 20/),
    });
    expect(told).toHaveLength(3);
    const counted = await Promise.all(ids.map((id) => counts(daemon, id)));
    const [stopped, failed, hung] = counted;
    expect(stopped).toMatchObject({ reported: linesIn(ran), failed: 0, extra: 0 });
    expect(stopped?.missed).toBeGreaterThan(0);
    expect(failed).toMatchObject({ missed: 0, extra: 0, failed: failed?.reported });
    expect(hung).toMatchObject({ missed: 0, extra: 0 });
    expect(hung?.failed).toBeGreaterThan(0);
    await rm(gate);
  },
);

interface Counts {
  expected: number;
  reported: number;
  missed: number;
  extra: number;
  failed: number;
}

async function counts(daemon: Daemon, id: string): Promise<Counts> {
  return (await daemon.call('GET', `/api/v1/schedules/${id}/observed`)).body as Counts;
}

test(
  'cron runs each minute before the moment of the cut-over, and firelock each from it on, though an instance is killed then',
  LIMIT,
  async (context) => {
    const cron = await debianCron(context);
    const [database, receiver] = await Promise.all([databaseOfTest(), receiverOfTest()]);
    const [killed, daemon] = await Promise.all([readyDaemon(database.url, SCALED), readyDaemon(database.url, SCALED)]);
    const ran = join(cron.folder, 'ran');
    const target = ['--target-url', `${receiver.url}/run`];
    const { ids, crontab } = await observed(daemon, cron, [`echo ran >> ${ran}`], ...target);
    const [id = ''] = ids;
    const first = cron.firstMinute();
    await cron.install(crontab);
    await cron.start();

    await until(() => (linesIn(ran) === MINUTES_OF_CRON ? true : null));
    const cutOver = first + (MINUTES_OF_CRON - 0.5) * CRON_MINUTE_MS;
    await cron.install('# moved\n');
    const observe = { until: iso(cutOver) };
    expect((await daemon.call('PATCH', `/api/v1/schedules/${id}`, { observe })).status).toBe(200);
    await setTimeout(Math.max(0, cutOver - Date.now()));
    killed.signal('SIGKILL');
    await receiver.arrived(MINUTES_OF_FIRELOCK);
    expect((await daemon.call('PATCH', `/api/v1/schedules/${id}`, { enabled: false })).status).toBe(200);

    const { body } = await daemon.call('GET', `/api/v1/schedules/${id}/runs?limit=100`);
    const runs = (body as { items: Run[] }).items.toReversed();
    const watched = runs.filter((run) => run.observed);
    const sent = runs.filter((run) => !run.observed);
    const moments = runs.map(({ scheduledFor }) => Date.parse(scheduledFor));
    expect(moments).toEqual(runs.map((_, index) => first + index * CRON_MINUTE_MS));
    expect(watched.map(({ status, trigger }) => [status, trigger])).toEqual(
      Array.from({ length: MINUTES_OF_CRON }, () => ['succeeded', 'schedule']),
    );
    expect(linesIn(ran)).toBe(MINUTES_OF_CRON);
    expect(await counts(daemon, id)).toMatchObject({
      ...{ expected: MINUTES_OF_CRON, reported: MINUTES_OF_CRON, missed: 0, extra: 0, failed: 0 },
    });
    expect(receiver.arrivals.map(({ body: { scheduledFor } }) => scheduledFor)).toEqual(
      sent.map(({ scheduledFor }) => scheduledFor),
    );
  },
);

const MINUTES_OF_CRON = 2;
const MINUTES_OF_FIRELOCK = 3;

interface Run {
  scheduledFor: string;
  observed: boolean;
  status: string;
  trigger: string;
}
