import { expect } from 'vitest';
import { ROLES } from '../../../src/core/access/roles.ts';
import { randomRunId } from '../../../src/core/runs/run.ts';
import { newToken } from '../access/support.ts';
import { type Answer, type Api, SCHEDULE, itemsOf } from '../api.ts';

/** One team's things have names that begin with this. */
export type Prefix = 'billing.' | 'ops.' | 'shared.';

const ADMIN = newToken('root', 'admin');
export const OPS = ROLES.map((role) => newToken(`ops-${role}`, role, null, ['ops.']));
export const BILLING = newToken('billing-admin', 'admin', null, ['billing.']);
export const API_TOKENS = [ADMIN, BILLING, ...OPS].map(({ known }) => known);

const HTTP = { type: 'http', url: 'http://127.0.0.1:9/' };

/** Ids of what a team has, by what it is for. */
export interface Team {
  prefix: Prefix;
  runs: Record<string, string>;
}

/** No two things of an installation have the same place in a list: where the time decides it, it differs. */
const ORDER: readonly Prefix[] = ['billing.', 'ops.', 'shared.'];
const SCHEDULES = ['active', 'connected', 'after', 'pull', 'paused', 'late', 'ended', 'error', 'gone'];
const minuteOf = (prefix: Prefix, name: string) => ORDER.indexOf(prefix) * 20 + SCHEDULES.indexOf(name);

export async function admin(api: Api, method: string, path: string, body?: unknown, more = {}) {
  const answer = await api.call(method, `/api/v1${path}`, body, { ...ADMIN.headers, ...more });
  expect([method, path, answer.status < 300 ? 'done' : answer.text]).toEqual([method, path, 'done']);
  return answer;
}

const idOf = ({ body }: Answer) => body['id'] as unknown as string;

/** Everything that a team can have: each kind of thing, and runs of each trigger and status. All of it is made by an admin without a scope. */
export async function fillTeam(api: Api, prefix: Prefix): Promise<Team> {
  await putThings(api, prefix);
  await putSchedules(api, prefix);
  const runs = { ...(await oneOffRuns(api, prefix)), ...(await firedRuns(api, prefix)) };
  await endRuns(api, prefix, runs);
  await addAlerts(api, prefix, runs);
  return { prefix, runs };
}

async function putThings(api: Api, p: Prefix): Promise<void> {
  await admin(api, 'PUT', `/calendars/${p}cal`, { dates: ['2028-12-24'], description: `${p}days` });
  await admin(api, 'PUT', `/limits/${p}lim`, { maxRunning: 3, description: `${p}limit` });
  await admin(api, 'PUT', `/connections/${p}con`, {
    url: `https://${p}example.com`,
    description: `${p}host`,
  });
  for (const name of ['bell', 'second'])
    await admin(api, 'PUT', `/notifiers/${p}${name}`, {
      ...{ filter: { ids: [`${p}*`] }, channel: { type: 'webhook', target: HTTP } },
      ...(name === 'second' && { fallback: `${p}bell`, on: ['missed'] }),
    });
}

async function putSchedules(api: Api, p: Prefix): Promise<void> {
  const labels = { team: 'any', who: p };
  const common = { ...SCHEDULE, labels, description: `${p}work` };
  const put = (name: string, more: object = {}) =>
    admin(api, 'PUT', `/schedules/${p}${name}`, {
      ...common,
      cron: `${minuteOf(p, name)} 12 29 2 *`,
      ...more,
    });
  await put('active', { limit: `${p}lim`, exclude: { calendars: [`${p}cal`] } });
  await put('connected', { target: { ...HTTP, url: '/x', connection: `${p}con` } });
  await put('after', { cron: undefined, after: { scheduleId: `${p}active` } });
  await put('pull', { target: { type: 'pull', queue: `${p}q` } });
  await put('paused', { enabled: false, pauseReason: `${p}reason` });
  await put('late', { successWithinSeconds: 60 });
  for (const name of ['ended', 'error', 'gone']) await put(name);
  await admin(api, 'PATCH', `/schedules/${p}gone`, { priority: 'low' });
  await admin(api, 'POST', `/schedules/${p}gone/fire`);
  await admin(api, 'DELETE', `/schedules/${p}gone`);
  await admin(api, 'POST', `/schedules/${p}active/skip`, { ...firstFire(p), reason: `${p}skip` });
  await api.sql`UPDATE schedules SET next_fire_at = NULL, next_occurrence_at = NULL WHERE id = ${`${p}ended`}`;
  await api.sql`UPDATE schedules SET error = ${`${p}fault`}, next_fire_at = NULL WHERE id = ${`${p}error`}`;
  await api.sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at)
    SELECT ${randomRunId(Date.now())}, uid, id, 'late', now(), now() FROM schedules WHERE id = ${`${p}late`}`;
}

export function firstFire(prefix: Prefix) {
  return { fireAt: `2032-02-29T12:${String(minuteOf(prefix, 'active')).padStart(2, '0')}:00Z` };
}

/** `runAt` keeps their order. */
async function oneOffRuns(api: Api, p: Prefix): Promise<Record<string, string>> {
  const post = async (key: string, minute: number, more: object) =>
    idOf(
      await admin(api, 'POST', '/runs', {
        ...{
          target: HTTP,
          key: p + key,
          payload: p,
          runAt: `2031-01-01T0${ORDER.indexOf(p)}:0${minute}:00Z`,
          ...more,
        },
      }),
    );
  const first = await post('first', 1, { limit: `${p}lim` });
  const next = await post('next', 2, { dependsOn: [first] });
  const pulled = await post('pulled', 3, { target: { type: 'pull', queue: `${p}q` } });
  const connected = await post('connected', 4, { target: { ...HTTP, url: '/x', connection: `${p}con` } });
  const { body } = await admin(api, 'POST', `/notifiers/${p}bell/test`);
  const item = (ref: string, more: object) => ({
    ref,
    key: `${p}${ref}`,
    target: HTTP,
    runAt: `2031-01-02T0${ORDER.indexOf(p)}:00:00Z`,
    ...more,
  });
  const together = await admin(api, 'POST', '/runs/batch', {
    ...{ name: `${p}batch`, labels: { who: p } },
    items: [item('extract', { dependsOn: [first] })],
  });
  const batch = together.body['batchId'] as unknown as string;
  const extract = itemsOf(together)[0]?.['id'] as unknown as string;
  return { first, next, pulled, connected, extract, batch, message: body['id'] as unknown as string };
}

async function firedRuns(api: Api, p: Prefix): Promise<Record<string, string>> {
  const runs: Record<string, string> = {};
  for (const name of ['one', 'cancelled', 'late'])
    runs[name] = idOf(
      await admin(api, 'POST', `/schedules/${p}active/fire`, { payload: p }, { 'idempotency-key': `${p}${name}` }),
    );
  const pulls: string[] = [];
  for (let i = 0; i < 4; i += 1) pulls.push(idOf(await admin(api, 'POST', `/schedules/${p}pull/fire`)));
  const claim = { workerId: `${p}worker`, max: 4 };
  const claimed = itemsOf(await admin(api, 'POST', `/queues/${p}q/claim`, claim)).map((run) => run['id']);
  expect(claimed).toHaveLength(4);
  const [running = '', succeeded = '', failed = '', unknown = ''] = pulls;
  const planned = { from: '2024-01-01T00:00:00Z', to: '2025-01-01T00:00:00Z' };
  await admin(api, 'POST', `/schedules/${p}active/backfill`, planned);
  return { ...runs, running, succeeded, failed, unknown };
}

async function endRuns(api: Api, p: Prefix, runs: Record<string, string>): Promise<void> {
  await admin(api, 'POST', `/runs/${runs['cancelled'] ?? ''}/cancel`);
  for (const status of ['succeeded', 'failed'])
    await admin(api, 'POST', `/runs/${runs[status] ?? ''}/complete`, {
      status,
      result: status,
      workerId: `${p}worker`,
    });
  // Ended otherwise, and late by as much as no clock decides.
  await api.sql`UPDATE runs SET trigger = 'catchUp' WHERE id = ${runs['late'] ?? ''}`;
}

async function addAlerts(api: Api, p: Prefix, runs: Record<string, string>): Promise<void> {
  for (const [n, until] of [null, new Date()].entries()) {
    const id = `0190000${ORDER.indexOf(p)}-0000-7000-8000-00000000000${n}`;
    await api.sql`INSERT INTO alerts (id, schedule_uid, schedule_id, kind, since, broken_at, until, run_id, status, error)
      SELECT ${id}, uid, id, 'failed', now(), now(), ${until}, ${runs['failed'] ?? null}, 'failed', ${`${p}${n}`}
      FROM schedules WHERE id = ${`${p}pull`}`;
  }
}

/** Of the team alone: figures that a clock decides would differ from one installation to the other. */
export async function fixFigures(api: Api): Promise<void> {
  for (const table of ['runs', 'history'])
    await api.sql`UPDATE ${api.sql(table)} SET lateness_ms = CASE WHEN schedule_id LIKE 'billing.%' THEN 500000 ELSE 7 END
      WHERE lateness_ms IS NOT NULL`;
}

/** Rows of all tables that have a word or an id of this team in them; not what ops was refused. */
export async function rowsOfTeam(api: Api, { prefix, runs }: Team): Promise<string[]> {
  const tables = await api.sql<{ name: string }[]>`
    SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      -- A worker that has not been seen for some minutes is forgotten, whoever asks for what.
      AND c.relname <> 'queue_workers' ORDER BY 1`;
  const marks = [prefix.slice(0, -1), ...Object.values(runs)];
  const found: string[] = [];
  for (const { name } of tables) {
    const rows = await api.sql<{ text: string }[]>`SELECT row_to_json(t)::text AS text FROM ${api.sql(name)} t`;
    for (const { text } of rows)
      if (marks.some((mark) => text.includes(mark)) && !text.includes('"by":"ops-')) found.push(`${name} ${text}`);
  }
  return found.sort();
}
