import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { callApi, send } from '../../support/calls.ts';
import { addMigration } from '../../support/postgres/add-migration.ts';
import { copyStatement } from '../../../bench/support/copy-rows.ts';
import type { Hosts } from '../../../bench/support/processes/hosts.ts';
import { putSchedules } from '../../../bench/support/schedules.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { type IsolationStage, ANSWERING_DOMAIN, SILENT_DOMAIN } from './isolation-stage.ts';

const BACKLOG = 200_000;
const FOLLOWERS = 9_000;
const ENDS = 300;
const HANGING_RUNS = 80;
const SLOW_RUNS = 10;
const SILENT_NAMES = 40;
const NAMED_RUNS = 10;
const BATCH = 1_000;

/** One user's volume, or one user's targets, that must not hold up the others. */
export interface Burden {
  name: string;
  title: string;
  /** So many ms it may add to the 99th percentile of others; without it, what cannot be told from noise. */
  allowedMs?: number;
  /** Further settings of the daemons. */
  variables?: Record<string, string>;
  /** Before the witnesses are measured without it: what takes long to make. */
  prepare?(stage: IsolationStage): Promise<void>;
  /** Lays the burden on. Answers what is to be true of the burden itself once the witnesses were measured beside it. */
  begin(stage: IsolationStage): Promise<() => Promise<Fact[]>>;
}

/** What came of the burden itself. */
export interface Fact {
  what: string;
  holds: boolean;
}

const replaced: Burden = {
  name: 'replaced-backlog',
  title: 'the next fire of a schedule with 200,000 open runs, `overlap: replace`',
  prepare: (stage) => openBacklog(stage, 'replace'),
  begin: async ({ url, cluster }) => {
    const before = await openRunsOf(cluster, BACKLOG_ID);
    await patch(url, BACKLOG_ID, { enabled: true });
    return async () => {
      const left = await settledRuns(cluster, BACKLOG_ID, 2);
      const { planned } = await runsPlanned(cluster, BACKLOG_ID);
      return [
        { what: `${before} open runs, ${planned} fires of the schedule itself`, holds: planned > 0 },
        { what: `all but ${left} of them are replaced in the end`, holds: left <= 2 },
      ];
    };
  },
};

const deleted: Burden = {
  name: 'deleted-backlog',
  title: 'DELETE of a schedule with 200,000 open runs',
  prepare: (stage) => openBacklog(stage, 'allow'),
  begin: async ({ url, cluster }) => {
    const answered = timed(() =>
      fetch(`${url}/api/v1/schedules/${BACKLOG_ID}`, { method: 'DELETE' }).then(({ status }) => status),
    );
    await sleep(0);
    return async () => {
      const { result: status, ms } = await answered;
      const left = await settledRuns(cluster, BACKLOG_ID, 0);
      return [
        { what: `DELETE answered ${status} after ${ms} ms`, holds: status === 204 },
        { what: `${left} of its runs are still open in the end`, holds: left === 0 },
      ];
    };
  },
};

const guarded: Burden = {
  name: 'guarded-backlog',
  title: 'an edit from `overlap: allow` to `skip` where 200,000 runs are open',
  prepare: (stage) => openBacklog(stage, 'allow'),
  begin: async ({ url, cluster }) => {
    const { result: status, ms } = await timed(() =>
      patch(url, BACKLOG_ID, { overlap: 'skip', enabled: true, pauseAfterFailures: 3 }),
    );
    return async () => {
      const { skipped } = await runsPlanned(cluster, BACKLOG_ID);
      return [
        { what: `PATCH answered ${status} after ${ms} ms`, holds: status === 200 },
        { what: `${skipped} later fires were skipped beside the open runs`, holds: skipped > 0 },
      ];
    };
  },
};

const followers: Burden = {
  name: 'followers',
  title: '300 ends of a schedule that 9,000 others follow',
  prepare: async ({ url, scale, witnesses }) => {
    const count = Math.ceil(FOLLOWERS * scale);
    const target = { type: 'pull', queue: 'never-claimed' };
    await putSchedules(url, [
      { id: 'parent', at: '2099-01-01T00:00:00Z', target: { type: 'http', url: witnesses.urls[0] } },
    ]);
    const items = Array.from({ length: count }, (_, index) => ({
      ...{ id: `follower-${index}`, target },
      after: { scheduleId: 'parent' },
    }));
    for (let from = 0; from < count; from += BATCH) await putSchedules(url, items.slice(from, from + BATCH));
  },
  begin: async ({ url, cluster, scale }) => {
    const ends = Math.ceil(ENDS * scale);
    for (let index = 0; index < ends; index += 1) await callApi(`${url}/api/v1/schedules/parent/fire`, {});
    return async () => {
      const made = Number((await cluster.admin(MADE_BY_FOLLOWERS))?.[0]?.['count']);
      return [{ what: `${made} runs of followers by then, of ${ends} ends`, holds: made > 0 }];
    };
  },
};

const MADE_BY_FOLLOWERS = `SELECT count(*) FROM runs WHERE trigger = 'after' AND schedule_id LIKE 'follower-%'`;

const hanging: Burden = {
  name: 'hanging-origins',
  title: 'three origins that never answer, 80 runs each, beside one that answers after 2 s',
  begin: async ({ url, silent, slow }) => {
    for (const [index, target] of silent.urls.entries())
      await submit(url, HANGING_RUNS, () => ({
        ...{ target: { type: 'http', url: `${target}${index}` }, timeoutSeconds: 3600 },
        retry: { maxAttempts: 1 },
      }));
    await sleep(3_000);
    await submit(url, SLOW_RUNS, () => ({ target: { type: 'http', url: slow.urls[0] } }));
    return () => allArrive(slow, SLOW_RUNS);
  },
};

const silentNames: Burden = {
  name: 'silent-names',
  title: '40 runs to names that no name server answers for, beside 10 by a name that is there',
  begin: async ({ url, slow }) => {
    const { port } = new URL(slow.urls[0] ?? '');
    await submit(url, SILENT_NAMES, (index) => ({
      target: { type: 'http', url: `http://name-${index}.${SILENT_DOMAIN}:${port}/` },
    }));
    await sleep(1_000);
    await submit(url, NAMED_RUNS, (index) => ({
      target: { type: 'http', url: `http://name-${index}.${ANSWERING_DOMAIN}:${port}/` },
    }));
    return () => allArrive(slow, NAMED_RUNS);
  },
};

const migration: Burden = {
  name: 'migration',
  title: 'a migration that needs the tables of runs and schedules for itself, behind a reader of 20 s',
  begin: async ({ cluster, root }) => {
    const folder = await mkdtemp(join(tmpdir(), 'firelock-migration-'));
    await cp(join(root, 'drizzle'), folder, { recursive: true });
    addMigration(
      folder,
      '9999_isolation',
      'ALTER TABLE runs ADD COLUMN isolation text;',
      '--> statement-breakpoint',
      'ALTER TABLE schedules ADD COLUMN isolation text;',
    );
    const reader = cluster.admin(LONG_READ);
    let waits = 0;
    const applied = migrate(cluster.url, { folder, onWait: () => (waits += 1) });
    return async () => {
      const [count] = await Promise.all([applied, reader]);
      await rm(folder, { recursive: true });
      return [{ what: `${count} migration was applied, after ${waits} waits`, holds: count === 1 && waits > 0 }];
    };
  },
};

const LONG_READ =
  'SELECT pg_sleep(20) FROM (SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM schedules)) AS rows';

/** Waits until so many runs have come to these hosts. */
async function allArrive(hosts: Hosts, count: number): Promise<Fact[]> {
  let arrived = 0;
  for (let waited = 0; waited < MAX_WAIT_SECONDS; waited += 1) {
    arrived += (await hosts.take()).at.length;
    if (arrived >= count) break;
    await sleep(1_000);
  }
  return [{ what: `${arrived} of ${count} runs arrived`, holds: arrived >= count }];
}

const MAX_WAIT_SECONDS = 60;

const BACKLOG_ID = 'backlog';

/** A paused schedule for workers that never come, and as many open runs of it as one call after the other would have made in a day. */
async function openBacklog({ url, cluster, scale }: IsolationStage, overlap: string): Promise<void> {
  await putSchedules(url, [
    {
      ...{ id: BACKLOG_ID, cron: '* * * * * *', enabled: false, overlap },
      target: { type: 'pull', queue: 'never-claimed' },
    },
  ]);
  await callApi(`${url}/api/v1/schedules/${BACKLOG_ID}/fire`, {});
  const query = async (statement: string) => {
    const rows = await cluster.admin(statement);
    if (!rows) throw new Error(`refused: ${statement}`);
    return rows;
  };
  const copies = await copyStatement(query, 'runs', {
    id: `(substr(t.id::text, 1, 15) || substr(gen_random_uuid()::text, 16))::uuid`,
    created_at: `t.created_at + n * interval '1 microsecond'`,
  });
  await query(`WITH new AS (SELECT n FROM generate_series(2, ${Math.ceil(BACKLOG * scale)}) AS n)
    ${copies} WHERE t.schedule_id = '${BACKLOG_ID}'`);
}

type Cluster = IsolationStage['cluster'];

async function openRunsOf(cluster: Cluster, id: string): Promise<number> {
  return Number((await cluster.admin(`SELECT count(*) FROM runs WHERE schedule_id = '${id}'`))?.[0]?.['count']);
}

/** Waits until no more than so many runs are open, as long as some end; answers how many are left. */
async function settledRuns(cluster: Cluster, id: string, atMost: number): Promise<number> {
  let [left, since] = [await openRunsOf(cluster, id), performance.now()];
  while (left > atMost && performance.now() - since < STILL_MS) {
    await sleep(1_000);
    const now = await openRunsOf(cluster, id);
    if (now < left) since = performance.now();
    left = now;
  }
  return left;
}

const STILL_MS = 30_000;

async function runsPlanned(cluster: Cluster, id: string): Promise<{ planned: number; skipped: number }> {
  const [row] =
    (await cluster.admin(`SELECT count(*) AS planned, count(*) FILTER (WHERE status = 'skipped') AS skipped
      FROM all_runs WHERE schedule_id = '${id}' AND trigger = 'schedule'`)) ?? [];
  return { planned: Number(row?.['planned']), skipped: Number(row?.['skipped']) };
}

async function patch(url: string, id: string, body: object): Promise<number> {
  return (await send(`${url}/api/v1/schedules/${id}`, 'PATCH', { body })).status;
}

async function submit(url: string, count: number, run: (index: number) => object): Promise<void> {
  const items = Array.from({ length: count }, (_, index) => ({ ref: `run-${index}`, ...run(index) }));
  await callApi(`${url}/api/v1/runs/batch`, { items });
}

async function timed<Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> {
  const began = performance.now();
  const result = await work();
  return { result, ms: Math.round(performance.now() - began) };
}

/** The witnesses have a scope, and what burdens them has another one. */
const variables = { FIRELOCK_SCOPES: 'witness-,herd-' };
/** As docs/teams.md says. */
const allowedMs = 250;
const HERD = 100_000;
const LANES = 1_000;

const lanes: Burden = {
  name: 'scopes',
  title: '100,000 due runs of another scope, in 1,000 lanes',
  ...{ allowedMs, variables },
  prepare: ({ url, slow }) => template(url, slow.urls[0] ?? ''),
  begin: (stage) => dueRuns(stage, `'http http://herd-' || n % ${LANES} || ' @herd-'`),
};

const oneLane: Burden = {
  name: 'scopes-one-lane',
  title: '100,000 due runs of another scope, to a host of the others',
  ...{ allowedMs, variables },
  prepare: ({ url, witnesses }) => template(url, witnesses.urls[0] ?? ''),
  begin: (stage) => dueRuns(stage, 't.lane'),
};

const schedules: Burden = {
  name: 'scopes-schedules',
  title: '100,000 schedules of another scope that come due at one moment',
  ...{ allowedMs, variables },
  prepare: manySchedules,
  begin: async (stage) => {
    const rows = await query(
      stage,
    )(`UPDATE schedules SET next_fire_at = date_trunc('day', now()), next_occurrence_at = date_trunc('day', now())
      WHERE id LIKE 'herd-%' RETURNING 1`);
    return () => sentOf(stage, rows.length);
  },
};

const SCOPE_BURDENS: readonly Burden[] = [lanes, oneLane, schedules];

/** A run far in the future, to be copied. */
async function template(url: string, target: string): Promise<void> {
  await callApi(`${url}/api/v1/runs`, {
    ...{ key: 'herd-0', runAt: '2099-01-01T00:00:00Z', target: { type: 'http', url: target } },
    retry: { maxAttempts: 1 },
  });
}

/** Due a minute before the witnesses are measured, so that none of these counts as one of theirs. */
async function dueRuns(stage: IsolationStage, lane: string): Promise<() => Promise<Fact[]>> {
  const at = `date_trunc('milliseconds', now() - interval '1 minute')`;
  const copies = await copyStatement(query(stage), 'runs', {
    id: `(lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0') || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid`,
    ...{ scheduled_for: at, due_at: at, ready: 'true', key: `'herd-' || n`, lane },
  });
  const count = Math.ceil(HERD * stage.scale);
  await query(stage)(`WITH new AS (SELECT n FROM generate_series(1, ${count}) AS n) ${copies} WHERE t.key = 'herd-0'`);
  return () => sentOf(stage, count);
}

async function manySchedules(stage: IsolationStage): Promise<void> {
  const { url, slow, scale } = stage;
  const target = { type: 'http', url: slow.urls[0] };
  // Midnight counts as on time all day.
  await putSchedules(url, [
    { ...{ id: 'herd-0', cron: '0 0 * * *', graceSeconds: 86_400 }, retry: { maxAttempts: 1 }, target },
  ]);
  const uid = `('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;
  const id = `'herd-' || n`;
  const versions = await copyStatement(query(stage), 'schedule_versions', {
    schedule_uid: uid,
    schedule_id: id,
  });
  const rows = await copyStatement(query(stage), 'schedules', { uid, id });
  const these = `WITH new AS (SELECT n FROM generate_series(1, ${Math.ceil(HERD * scale)}) AS n)`;
  await query(stage)(`${these} ${versions} WHERE t.schedule_id = 'herd-0'`);
  await query(stage)(`${these} ${rows} WHERE t.id = 'herd-0'`);
  await query(stage)('ANALYZE schedules');
}

/** How many were begun by now: the burden is one only as long as some are left, and none if nothing of it is done. */
async function sentOf(stage: IsolationStage, count: number): Promise<Fact[]> {
  const [row] = await query(stage)(`SELECT count(*) AS planned, count(*) FILTER (WHERE attempts > 0) AS sent
    FROM all_runs WHERE (key LIKE 'herd-%' OR schedule_id LIKE 'herd-%')`);
  const sent = Number(row?.['sent']);
  return [
    {
      what: `${sent} of ${Number(row?.['planned'])} recorded runs of the other scope were begun meanwhile, of ${count}`,
      holds: sent > 0,
    },
  ];
}

function query({ cluster }: IsolationStage) {
  return async (statement: string) => {
    const rows = await cluster.admin(statement);
    if (!rows) throw new Error(`refused: ${statement}`);
    return rows;
  };
}

export const BURDENS: readonly Burden[] = [
  ...[replaced, deleted, guarded, followers, hanging, silentNames, migration],
  ...SCOPE_BURDENS,
];
