// @module-tag long
import { execFile } from 'node:child_process';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { eachTest, databaseOfTest } from '../../support/of-test.ts';
import { spawnDaemon } from '../../support/daemon.ts';
import { daemonHere } from '../../support/daemon-here.ts';
import { SECRET_KEYS } from '../../support/secrets.ts';

const database = eachTest(databaseOfTest);
let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firelock-file-'));
  path = join(folder, 'schedules.yaml');
});
afterEach(() => rm(folder, { recursive: true }));

const FILE = `set: deployed
limits: [{id: few, maxRunning: 2}]
connections: [{id: system, url: https://example.com, auth: {type: bearer, token: "\${JOB_TOKEN}"}}]
schedules:
  - id: nightly
    cron: 0 2 * * *
    limit: few
    target: {type: http, connection: system, url: /, headers: {x-job: "\${JOB_TOKEN}"}}
  - id: report
    after: {scheduleId: nightly}
    target: {type: pull, queue: q}
`;

test('instances that start together apply the file once, and later starts change only the differences', async () => {
  await writeFile(path, FILE);
  vi.stubEnv('JOB_TOKEN', 'secret');
  onTestFinished(() => void vi.unstubAllEnvs());
  const variables = {
    FIRELOCK_SCHEDULES_FILE: path,
    FIRELOCK_SECRET_KEYS: SECRET_KEYS,
    FIRELOCK_FILE_VARIABLES: 'JOB_TOKEN',
    FIRELOCK_API_TOKENS: '',
  };
  const daemons = await Promise.all([1, 2].map(() => daemonHere(database.url, variables)));
  const [daemon] = daemons;
  const versions = async (id: string) => {
    const answer = await daemon?.call('GET', `/api/v1/schedules/${id}/versions`);
    const { items } = answer?.body as { items: { version: number; by: string; change: string }[] };
    return items.map(({ version, by, change }) => [version, by, change]);
  };
  expect(await versions('nightly')).toEqual([[1, 'schedules-file', 'created']]);
  expect(await versions('report')).toEqual([[1, 'schedules-file', 'created']]);
  const logged = await Promise.all(daemons.map((one) => one.logged(/^applied the schedules file/)));
  expect(logged.map(({ created, updated }) => [created, updated]).sort()).toEqual([
    [0, 0],
    [4, 0],
  ]);

  await writeFile(path, FILE.replace('0 2 * * *', '0 3 * * *').replace(/ {2}- id: report[^]*/, ''));
  const later = await daemonHere(database.url, variables);
  expect(await versions('nightly')).toEqual([
    [2, 'schedules-file', 'updated'],
    [1, 'schedules-file', 'created'],
  ]);
  // Nothing is removed, and what is left is named.
  expect(await versions('report')).toEqual([[1, 'schedules-file', 'created']]);
  expect(await later.logged(/are not in the file, and go on/)).toMatchObject({
    ...{ set: 'deployed', schedules: 1, scheduleIds: ['report'] },
  });
  const { warnings } = (await later.call('GET', '/readyz')).body as { warnings: string[] };
  expect(warnings).toContainEqual(expect.stringMatching(/^1 schedules of the set of FIRELOCK_SCHEDULES_FILE/));

  const text = await readFile(path, 'utf8');
  await writeFile(path, `prune: true\n${text}`);
  const last = await daemonHere(database.url, variables);
  expect(await last.logged(/^applied the schedules file/)).toMatchObject({ deleted: 1, unchanged: 3 });
  expect((await last.call('GET', '/api/v1/schedules/report')).status).toBe(404);
  expect((await last.call('GET', '/api/v1/schedules/nightly')).status).toBe(200);
});

test('the file is read before the lock is taken, however long that takes', async () => {
  await promisify(execFile)('mkfifo', [path]);
  const started = daemonHere(database.url, { FIRELOCK_SCHEDULES_FILE: path });
  // Opens when the daemon begins to read.
  const pipe = await open(path, 'w');
  const sql = postgres(database.url, { max: 1 });
  const locks = await sql`SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND d.datname = current_database()`;
  await sql.end();
  expect(locks).toEqual([]);
  await pipe.writeFile('schedules: [{id: late, everySeconds: 60, target: {type: pull, queue: q}}]');
  await pipe.close();
  expect((await (await started).call('GET', '/api/v1/schedules/late')).status).toBe(200);
});

test('a file with faults keeps the daemon from starting: each is named with its line, and nothing is applied', async () => {
  await writeFile(path, FILE.replace('0 2 * * *', '0 25 * * *').replace('limit: few', 'limit: none'));
  const variables = { FIRELOCK_SCHEDULES_FILE: path, FIRELOCK_SECRET_KEYS: SECRET_KEYS, JOB_TOKEN: 'secret' };
  const started = spawnDaemon({ DATABASE_URL: database.url, PORT: '0', ...variables });
  expect(await started.exited).toBe(1);
  const said = started.lines.join('\n');
  expect(said).toContain('firelock cannot start with FIRELOCK_SCHEDULES_FILE:');
  expect(said).toMatch(/schedules\.yaml:6: schedule nightly, \/cron: hour, column 3/);
  expect(said).toMatch(
    /schedules\.yaml:8: schedule nightly, .*JOB_TOKEN is not in the list .*: FIRELOCK_FILE_VARIABLES"/,
  );

  const plain = await daemonHere(database.url);
  expect((await plain.call('GET', '/api/v1/schedules')).body).toMatchObject({ items: [] });
  expect((await plain.call('GET', '/api/v1/limits')).body).toMatchObject({ items: [] });
});
