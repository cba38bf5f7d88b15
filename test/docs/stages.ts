import { expect } from 'vitest';
import { type Api, type Json, TARGET } from '../api/api.ts';
import { newToken } from '../api/access/support.ts';
import { changeRun } from '../support/run-rows.ts';
import { blocksOf, textOf } from './blocks.ts';
import type { Said, Stage } from './shell.ts';

/** What a page takes for granted, and what is to be seen after its blocks. */
interface PageStage {
  /** The API asks for a token; the blocks have the first of these in FIRELOCK_TOKEN. */
  tokens?: ReturnType<typeof newToken>[];
  prepare?: (api: Api) => Promise<Partial<Stage>>;
  after?: (api: Api, said: readonly Said[]) => Promise<void> | void;
  /** Members of shown answers that differ at each reader. */
  shapes?: string[];
}

const CI = newToken('ci', 'admin');
const PLATFORM = newToken('platform', 'admin');
const BILLING_CI = newToken('billing-ci', 'admin', null, ['billing.']);
const BILLING_WORKERS = newToken('billing-workers', 'worker', null, ['billing.']);
const HOLIDAYS = [
  ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//example//EN', 'BEGIN:VEVENT', 'UID:new-year@example.com'],
  ...['DTSTART;VALUE=DATE:20300101', 'RRULE:FREQ=YEARLY', 'SUMMARY:New Year', 'END:VEVENT', 'END:VCALENDAR', ''],
].join('\r\n');
const HTTP = { type: 'http', url: 'http://127.0.0.1:9000/run' };

/** Pages without an entry need nothing but an empty installation. */
export const STAGES: Readonly<Record<string, PageStage>> = {
  'docs/cli.md': {
    prepare: async (api) => {
      await make(api, 'PUT', '/schedules/invoices', { cron: '@daily', target: HTTP });
      await make(api, 'PUT', '/calendars/holidays', { dates: ['2030-12-26'] });
      await make(api, 'PUT', '/connections/github', { url: 'https://api.github.com' });
      const run = await make(api, 'POST', '/runs', { target: HTTP });
      const id = run['id'] as unknown as string;
      await make(api, 'POST', `/runs/${id}/cancel`);
      return {
        instead: { '0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60': id },
        files: {
          'holidays.ics': HOLIDAYS,
          'schedules.yaml': 'schedules:\n  - { id: mail, cron: "@daily", target: { type: pull, queue: mail } }\n',
        },
      };
    },
  },
  'docs/connections.md': {
    after: (_, said) => {
      const [standup, ruled] = answersIn(said);
      expect(standup).toMatchObject({ target: { body: { contentType: 'application/json' }, outcome: null } });
      expect(ruled).toMatchObject({ target: { outcome: { otherwise: 'fail' } }, version: 2 });
    },
  },
  'docs/git.md': {
    prepare: () => Promise.resolve({ files: { mycrontab: '0 2 * * * /usr/bin/backup\n' } }),
    after: (_, said) => {
      const [applied] = said;
      expect(applied?.out.match(/^\d+ (to create|created), .*$/gm)).toEqual([
        '5 to create, 0 to change, 0 to delete, 0 unchanged',
        '5 created, 0 changed, 0 deleted, 0 unchanged',
        '0 created, 0 changed, 0 deleted, 5 unchanged',
      ]);
      expect(said.at(-1)?.out).toMatch(/^\+ schedule backup-/m);
    },
  },
  'docs/guide.md': {
    prepare: (api) => offer(api, 'loads'),
    after: (_, said) => {
      const skipping = said.find(({ block }) => block.text.includes('/unskip'));
      expect(skipping?.answers).toMatchObject([
        { status: 'active', version: 1 },
        { fireAt: '2090-12-25T09:00:00.000Z', skipped: true },
        {
          items: [
            { fireAt: '2090-12-24T09:00:00.000Z' },
            { fireAt: '2090-12-25T09:00:00.000Z', skipped: true, skipReason: 'closed for Christmas' },
            { fireAt: '2090-12-26T09:00:00.000Z' },
          ],
        },
        { fireAt: '2090-12-25T09:00:00.000Z', skipped: false },
      ]);
    },
  },
  // What they are once an instance has sent: test/examples/limits.test.ts.
  'docs/limits.md': { shapes: ['running', 'waiting'] },
  'docs/maintenance.md': {
    prepare: async (api) => {
      await make(api, 'PUT', '/schedules/report', { cron: '@yearly', target: HTTP });
      return {};
    },
    shapes: ['since'],
    after: (_, said) => {
      const [begun, read, ended] = answersIn(said).slice(2);
      expect(read).toEqual(begun);
      expect(ended).toMatchObject({ on: false });
    },
  },
  'docs/moving-here.md': {
    prepare: () => Promise.resolve({ files: { mycrontab: '0 2 * * * /usr/bin/backup\n' } }),
    after: async (api, said) => {
      const out = said.map((one) => one.out).join('');
      expect(out).toMatch(/reports to +\/ping\/[\w-]{22}/);
      expect(out).toContain('"cron": "0 12 * * MON-FRI",\n  "timezone": "Europe/Berlin"');
      const { body } = await api.call('GET', '/api/v1/schedules');
      const items = body['items'] as unknown as { id: string; observe: unknown }[];
      expect(items.map(({ id, observe }) => [id, observe]).sort()).toEqual([
        ['backup-85e259d5', null],
        ['invoices', { until: '2090-02-03T12:30:00.000Z' }],
        ['shop.report', { until: null }],
      ]);
    },
  },
  'docs/notifications.md': {
    shapes: ['version', 'updatedAt'],
    after: (_, said) => {
      const puts = answersIn(said).slice(0, 4);
      expect(puts.map((answer) => (answer as { id: string }).id)).toEqual(['team', 'on-call', 'mail', 'hook']);
      const tested = said.find(({ block }) => block.text.includes('/test'))?.answers[0];
      expect(tested).toMatchObject({ trigger: 'notify', notifierId: 'hook', status: 'pending' });
    },
  },
  'docs/runbook.md': { tokens: [newToken('on-call', 'operator')] },
  'docs/runs.md': {
    prepare: async (api) => {
      const run = await make(api, 'POST', '/runs', { target: TARGET, completion: 'callback' });
      const id = run['id'] as unknown as string;
      const now = new Date().toISOString();
      const handedOff = { claimed_at: now, handoff_started_at: now, handed_off_at: now, lateness_ms: 0 };
      const claim = { claimed_by: crypto.randomUUID(), lease_seconds: 3600 };
      const row = { status: 'running', attempts: 1, expires_at: new Date(Date.now() + 3_600_000) };
      await changeRun(api.sql, id, { ...row, ...handedOff, ...claim });
      await offer(api, 'reports');
      const target = {
        ...HTTP,
        url: 'http://127.0.0.1:9000/invoices',
        headers: { authorization: 'Bearer old' },
      };
      const labels = { team: 'billing', tier: 'batch' };
      await make(api, 'PUT', '/schedules/invoices', { cron: '0 6 * * *', labels, target });
      await make(api, 'POST', '/schedules/invoices/fire');
      return { env: { RUN_ID: id }, targetUrl: 'http://127.0.0.1:9000' };
    },
    shapes: ['matched', 'changed', 'remaining', 'sample'],
    after: (_, said) => {
      const first = said.find(({ block }) => block.text.includes('/schedules/bulk'))?.block.line ?? 0;
      const [dryPause, pause, resume, retry, cancel, , schedules, runs] = answersIn(
        said.filter(({ block }) => block.line >= first),
      );
      expect(dryPause).toEqual({ matched: 1, changed: 0, remaining: 1, sample: ['invoices'] });
      for (const done of [pause, resume])
        expect(done).toEqual({ matched: 1, changed: 1, remaining: 0, sample: ['invoices'] });
      expect(retry).toEqual({ matched: 0, changed: 0, remaining: 0, sample: [] });
      expect(cancel).toMatchObject({ matched: 1, changed: 1, remaining: 0 });
      expect(schedules).toMatchObject({ items: [{ id: 'invoices', recentRuns: [{ status: 'cancelled' }] }] });
      expect(runs).toEqual({ items: [], nextCursor: null });
    },
  },
  'docs/days.md': { after: expectDays },
  'docs/secrets.md': {
    after: (_, said) => {
      expect(printedBy('echo "FIRELOCK_SECRET_KEYS', said)).toMatch(/^FIRELOCK_SECRET_KEYS=k1:[\w+/]{43}=$/);
      expect(printedBy('echo "whsec_', said)).toMatch(/^whsec_[\w+/]{43}=$/);
    },
  },
  'docs/security.md': {
    tokens: [CI],
    prepare: async (api) => {
      const put = (body: object) => make(api, 'PUT', '/schedules/nightly-report', body, CI.headers);
      await put({ cron: '@daily', target: HTTP });
      await put({ cron: '@hourly', payload: {}, target: HTTP });
      return {};
    },
    shapes: ['at', 'version'],
    after: (_, said) => {
      expect(printedBy('firelock token create', said)).toMatch(/^flk_\w{36}\nci:operator:[0-9a-f]{64}:2/);
    },
  },
  'docs/time.md': {
    after: (_, said) => {
      const [created, upcoming] = answersIn(said);
      expect(created).toMatchObject({ cron: ['0 9 * * MON-FRI', '0 11 * * SAT'], status: 'active' });
      // Friday, Saturday, Monday.
      expect(upcoming).toEqual({
        items: [
          { fireAt: '2027-01-01T08:00:00.000Z', local: '2027-01-01T09:00:00.000+01:00' },
          { fireAt: '2027-01-02T10:00:00.000Z', local: '2027-01-02T11:00:00.000+01:00' },
          { fireAt: '2027-01-04T08:00:00.000Z', local: '2027-01-04T09:00:00.000+01:00' },
        ],
        warnings: [],
      });
    },
  },
  // What the receivers do with it: test/examples/receivers.test.ts.
  'examples/receivers/README.md': {
    after: async (api, said) => {
      const [created] = answersIn(said) as [{ id: string }];
      const { body } = await api.call('GET', `/api/v1/runs/${created.id}`);
      const target = { type: 'http', method: 'POST', secret: '***' };
      expect(body).toMatchObject({ status: 'pending', target, payload: { text: 'hello' } });
    },
  },
  'docs/teams.md': {
    tokens: [PLATFORM, BILLING_CI, BILLING_WORKERS],
    prepare: () => {
      const tokens = { PLATFORM, BILLING_CI, BILLING_WORKERS };
      const variables = Object.entries(tokens).map(([name, { secret }]) => [`${name}_TOKEN`, secret]);
      return Promise.resolve({ env: Object.fromEntries(variables) as Record<string, string> });
    },
    after: (_, said) => {
      expect(said.find(({ block }) => block.text.includes('apply'))?.out).toContain('"change":"created"');
      expect(answersIn(said).at(-1)).toEqual({ items: [] });
    },
  },
};

/** Each preview fires on the days of the drawing after it, at the time that stands between them. */
function expectDays(_: Api, said: readonly Said[]): void {
  const { page } = said[0]?.block ?? { page: '' };
  const asked = said.filter(({ block }) => block.text.includes('/preview'));
  expect(asked.length).toBe(9);
  for (const { block, answers } of asked) {
    const drawing = blocksOf(page).find(({ line }) => line > block.line);
    const time = /^At (\d\d:\d\d), on:$/m.exec(textOf(page).split('\n').slice(block.line).join('\n'))?.[1];
    const [{ items }] = answers as [{ items: { local: string; note?: string }[] }];
    const days = items.map(({ local, note }) => {
      const weekday = new Date(local.slice(0, 10)).toLocaleDateString('en-US', {
        weekday: 'short',
        timeZone: 'UTC',
      });
      const from = /^moved from \d{4}-(\d\d-\d\d)/.exec(note ?? '')?.[1];
      return `${weekday} ${local.slice(0, 10)}${from === undefined ? '' : ` (for ${from})`}`;
    });
    expect(days).toEqual(drawing?.text.trim().split(/ · |\n/));
    expect(new Set(items.map(({ local }) => local.slice(11, 16)))).toEqual(new Set([time]));
  }
}

const printedBy = (begins: string, said: readonly Said[]) =>
  said.find(({ block }) => block.text.startsWith(begins))?.out;

const answersIn = (said: readonly Said[]) => said.flatMap(({ answers }) => answers);

async function make(
  api: Api,
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<Json> {
  const answer = await api.call(method, `/api/v1${path}`, body, headers);
  expect([path, answer.status]).toEqual([path, expect.toSatisfy((status: number) => status < 300)]);
  return answer.body;
}

/** A run for the workers of a queue, so that a claim need not wait for one. */
async function offer(api: Api, queue: string): Promise<Partial<Stage>> {
  await make(api, 'POST', '/runs', { target: { type: 'pull', queue } });
  return {};
}
