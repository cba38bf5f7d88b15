/**
 * A rolling upgrade under load, from packages: two daemons of the version before are replaced, one after the other, by the
 * present one; then one of them by the version before, as who goes back does. Every fire is looked for in the history and
 * at the target.
 *
 *     npm run upgrade-drill -- [--from=REF] [--schedules=N] [--report=FILE]
 *
 * REF is a tag or a commit; unless given, the newest tag. While there is none, what is checked out here is both versions, and the
 * present one has migrations that are made up, of each kind.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { OUTSIDE, readMigrations } from '../src/postgres/migrations/read-migrations.ts';
import { freePort } from '../test/support/loopback.ts';
import { addMigration } from '../test/support/postgres/add-migration.ts';
import { startCluster } from '../test/support/postgres/server.ts';
import { type Daemon, listening, startCommand } from '../test/support/programs.ts';
import { type Receiver, startReceiver } from '../test/support/receiver.ts';
import { HUNG_AFTER_MS, until } from '../test/support/until.ts';
import { within } from '../test/support/within.ts';
import { type Check, runChecks } from './support/checks.ts';
import { commandIn, install, shellOf } from './support/package.ts';
import { newestRelease, packCommit, packFolder } from './support/versions.ts';

interface Stage {
  /** Where the two versions are installed. */
  readonly before: string;
  readonly now: string;
  readonly databaseUrl: string;
  readonly sql: postgres.Sql;
  readonly receiver: Receiver;
  readonly daemons: Daemon[];
  /** How many migrations the version before knows. */
  migrations: number;
  /** The first and the last second of which every fire has to be there, in milliseconds. */
  from: number;
  until: number;
}

const { values: options } = parseArgs({
  options: {
    from: { type: 'string', default: newestRelease() },
    schedules: { type: 'string', default: '50' },
    report: { type: 'string' },
  },
});
const count = Number(options.schedules);
assert.ok(count >= 1 && count <= 1000, '--schedules must be from 1 to 1000');

/** Under load before and after each step. */
const STEP_MS = 8_000;

/** What the next version might add: columns of tables that every fire writes, and indexes, one of them of each day of history. */
const MADE_UP: readonly (readonly [name: string, ...lines: string[]])[] = [
  ['9000_drill_runs', 'ALTER TABLE "runs" ADD COLUMN "drill" integer;'],
  ['9001_drill_schedules', 'ALTER TABLE "schedules" ADD COLUMN "drill" integer DEFAULT 0 NOT NULL;'],
  [
    '9002_drill_indexes',
    OUTSIDE,
    'CREATE INDEX CONCURRENTLY "runs_drill" ON "runs" USING btree ("drill");--> statement-breakpoint',
    'CREATE INDEX CONCURRENTLY "history_drill" ON "history" USING btree ("created_at");',
  ],
];

const checks: Check<Stage>[] = [
  ['two daemons of the version before fire', startsBefore],
  ['the first one is replaced, and the new one migrates under load', (stage) => replace(stage, stage.now)],
  ['the schema has been migrated', hasMigrated],
  ['the second one is replaced', (stage) => replace(stage, stage.now)],
  ['one goes back to the version before, on the new schema', (stage) => replace(stage, stage.before)],
  ['every run ends, and both leave with exit code 0', drains],
  ['no fire is lost, and none is doubled', losesNothing],
];

await runChecks({
  ...{ name: 'upgrade drill', checks, setStage, report: options.report },
  wrote: ({ daemons }) => daemons.flatMap(({ lines }) => lines.slice(-20)).join('\n'),
});

async function setStage(cleanup: (() => Promise<void> | void)[]): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-upgrade-'));
  chmodSync(folder, 0o755);
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }));
  const [before, now] = [join(folder, 'before'), join(folder, 'now')];
  installBoth(before, now);
  const cluster = await startCluster();
  cleanup.push(() => cluster.stop());
  const databaseUrl = await cluster.createDatabase();
  const sql = postgres(databaseUrl, { max: 1 });
  cleanup.push(() => sql.end());
  // Slow enough for some handoffs to be under way whenever a daemon is asked to leave.
  const receiver = await startReceiver((_, response) => void setTimeout(() => response.end('{}'), 200));
  cleanup.push(() => receiver.close());
  const stage: Stage = {
    before,
    now,
    databaseUrl,
    sql,
    receiver,
    daemons: [],
    migrations: 0,
    from: 0,
    until: 0,
  };
  cleanup.push(async () => {
    for (const daemon of stage.daemons) await daemon.kill();
  });
  return stage;
}

function installBoth(before: string, now: string) {
  const { from } = options;
  const present = packFolder(join(import.meta.dirname, '..'), join(now, 'packed'));
  install(present, now, '--omit=optional');
  if (from === undefined) {
    console.log('From what is checked out here to the same with migrations that are made up');
    install(present, before, '--omit=optional');
    for (const migration of MADE_UP) addMigration(migrationsOf(now), ...migration);
  } else {
    console.log(`From ${from} to what is checked out here`);
    install(packCommit(from, join(before, 'packed')), before, '--omit=optional');
  }
}

async function startsBefore(stage: Stage) {
  for (let started = 0; started < 2; started += 1) await startIn(stage, stage.before);
  const [first] = stage.daemons;
  for (let index = 0; index < count; index += 1) {
    const body = { cron: '* * * * * *', target: { type: 'http', url: `${stage.receiver.url}/drill` } };
    const { status, text } = (await first?.call('PUT', `/api/v1/schedules/drill-${index}`, body)) ?? {};
    assert.equal(status, 201, text);
  }
  stage.from = Math.ceil(Date.now() / 1000 + 1) * 1000;
  stage.migrations = (await migrationsIn(stage)).length;
  await sleep(STEP_MS);
}

/** The oldest leaves when the new one is ready, as a rolling update of Kubernetes does it. */
async function replace(stage: Stage, version: string) {
  const oldest = stage.daemons.find((daemon) => daemon.isRunning());
  assert.ok(oldest);
  await startIn(stage, version);
  await sleep(STEP_MS / 2);
  oldest.signal('SIGTERM');
  assert.equal(await within(HUNG_AFTER_MS, oldest.exited, 'it did not leave'), 0);
  await sleep(STEP_MS);
}

async function hasMigrated(stage: Stage) {
  const applied = await migrationsIn(stage);
  console.log(`    ${applied.length - stage.migrations} migrations were applied under load`);
  const missing = readMigrations(migrationsOf(stage.now)).filter(({ hash }) => !applied.includes(hash));
  assert.deepEqual(missing, []);
}

async function drains(stage: Stage) {
  stage.until = Math.floor(Date.now() / 1000) * 1000 - 1000;
  const last = new Date(stage.until);
  const open = () =>
    stage.sql`SELECT count(*)::int AS count FROM runs WHERE scheduled_for <= ${last}`.then(
      ([row]) => row?.['count'] as number,
    );
  await until(async () => (await open()) === 0 || null, HUNG_AFTER_MS);
  for (const daemon of stage.daemons) if (daemon.isRunning()) daemon.signal('SIGTERM');
  for (const daemon of stage.daemons) assert.equal(await within(HUNG_AFTER_MS, daemon.exited, 'it did not leave'), 0);
}

/** A moment is a schedule and a second. */
async function losesNothing(stage: Stage) {
  const rows = await stage.sql<{ schedule: string; at: Date; status: string }[]>`
    SELECT schedule_id AS schedule, scheduled_for AS at, status FROM all_runs
    WHERE scheduled_for BETWEEN ${new Date(stage.from)} AND ${new Date(stage.until)}`;
  const recorded = counted(rows.map(({ schedule, at }) => `${schedule} ${at.toISOString()}`));
  const delivered = counted(
    stage.receiver.arrivals.map(({ body }) => `${body.scheduleId} ${new Date(body.scheduledFor).toISOString()}`),
  );
  const due: string[] = [];
  for (let at = stage.from; at <= stage.until; at += 1000)
    for (let index = 0; index < count; index += 1) due.push(`drill-${index} ${new Date(at).toISOString()}`);
  const verdict = {
    due: due.length,
    unrecorded: due.filter((moment) => !recorded.has(moment)).length,
    lost: due.filter((moment) => !delivered.has(moment)).length,
    doubled: due.filter((moment) => (delivered.get(moment) ?? 0) > 1 || (recorded.get(moment) ?? 0) > 1).length,
    unsuccessful: rows.filter(({ status }) => status !== 'succeeded').length,
  };
  console.log(`    ${JSON.stringify(verdict)}`);
  assert.ok(due.length > count * 20, 'it was too short to show anything');
  assert.deepEqual(verdict, { due: due.length, unrecorded: 0, lost: 0, doubled: 0, unsuccessful: 0 });
}

async function startIn(stage: Stage, version: string) {
  const { cwd, env } = shellOf(version);
  const variables = { DATABASE_URL: stage.databaseUrl, PORT: String(await freePort()) };
  const program = startCommand(commandIn(version), [], {
    ...{ cwd, env: { ...env, ...variables }, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  const daemon = await within(HUNG_AFTER_MS, listening(program), 'it did not listen');
  stage.daemons.push(daemon);
  await within(HUNG_AFTER_MS, daemon.ready(), 'it was not ready');
}

async function migrationsIn({ sql }: Stage): Promise<string[]> {
  const rows = await sql<{ hash: string }[]>`SELECT hash FROM firelock_migrations`;
  return rows.map(({ hash }) => hash);
}

/** Where a package that is installed has them. */
function migrationsOf(version: string): string {
  return join(version, 'node_modules', 'firelock', 'drizzle');
}

function counted(moments: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const moment of moments) counts.set(moment, (counts.get(moment) ?? 0) + 1);
  return counts;
}
