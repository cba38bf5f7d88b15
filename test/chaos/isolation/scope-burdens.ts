import { callApi } from '../../support/calls.ts';
import { copyStatement } from '../../../bench/support/copy-rows.ts';
import { putSchedules } from '../../../bench/support/schedules.ts';
import type { Burden, Fact } from './burden.ts';
import type { IsolationStage } from './isolation-stage.ts';

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

export const SCOPE_BURDENS: readonly Burden[] = [lanes, oneLane, schedules];

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
  await query(stage)(
    `WITH new AS (SELECT n FROM generate_series(1, ${count}) AS n) ${copies} WHERE t.key = 'herd-0'`,
  );
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
