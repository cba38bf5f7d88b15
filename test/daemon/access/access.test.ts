// @module-tag long
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tokenLine } from '../../../src/core/access/token.ts';
import { newToken } from '../../api/access/support.ts';
import { firelock } from '../../cli/cli.ts';
import type { TestDatabase } from '../../support/postgres/cluster.ts';
import { createMigratedDatabase } from '../../support/postgres/migrated-database.ts';
import { type Daemon, spawnDaemon, startDaemon } from '../../support/daemon.ts';
import { until } from '../../support/until.ts';

/** Before every path, on both ports. */
const BASE = '/cron';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  database = await createMigratedDatabase();
  folder = await mkdtemp(join(tmpdir(), 'firelock-tokens-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await database.drop();
});

async function createToken(name: string, role: string): Promise<{ token: string; line: string }> {
  const { out } = await firelock(['token', 'create', name, '--role', role]);
  const [token = '', line = ''] = out.split('\n');
  return { token, line };
}

async function statusWith(daemon: Daemon, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${daemon.url}${BASE}/api/v1/schedules`, { headers })).status;
}

it('tokens of the command open a daemon; it reads their file again on SIGHUP, and keeps them if the file has a fault', async () => {
  const file = join(folder, 'tokens');
  const first = await createToken('ann', 'viewer');
  const { secret: token, known, headers } = newToken('ann', 'operator');
  const second = { token, line: tokenLine(known) };
  await writeFile(file, `# ours\n${first.line}\n`);
  const daemon = await startDaemon({
    DATABASE_URL: database.url,
    FIRELOCK_API_TOKENS_FILE: file,
    FIRELOCK_METRICS_PORT: '0',
    FIRELOCK_BASE_PATH: BASE,
  });
  const hangUp = async (content: string, logged: RegExp) => {
    const before = daemon.log().length;
    await writeFile(file, content);
    daemon.signal('SIGHUP');
    return until(
      () =>
        daemon
          .log()
          .slice(before)
          .find(({ msg }) => logged.test(msg)) ?? null,
    );
  };
  await daemon.logged(/^registered as an instance/);
  expect((await daemon.call('GET', `${BASE}/api/v1/schedules`)).status).toBe(401);
  expect(await statusWith(daemon, first.token)).toBe(200);
  expect(await statusWith(daemon, second.token)).toBe(401);

  await hangUp(`${first.line}\n${second.line}\n`, /^API tokens read/);
  expect(await statusWith(daemon, first.token)).toBe(200);
  expect(await statusWith(daemon, second.token)).toBe(200);

  const { tokens } = await hangUp(second.line, /^API tokens read/);
  expect(tokens).toEqual([expect.stringMatching(/^ann \(operator, [\da-f]{8}…, last used /)]);
  expect(await statusWith(daemon, first.token)).toBe(401);

  for (const [content, fault] of [
    [`${second.line}\nann:boss:x\n`, /line 2 \(ann\): its role must be/],
    ['', /no token there/],
  ] as const) {
    const { level, faults } = await hangUp(content, /^the file of tokens has faults/);
    expect([level, faults]).toEqual([50, expect.arrayContaining([expect.stringMatching(fault)])]);
    expect(await statusWith(daemon, second.token)).toBe(200);
  }

  const { msg } = await daemon.logged(/^\/metrics, \/healthz and \/readyz are on /);
  const signs = /http:\S+/.exec(msg)?.[0] ?? '';
  for (const path of ['/metrics', '/healthz', '/readyz']) {
    expect([path, (await daemon.call('GET', BASE + path)).status]).toEqual([path, 404]);
    expect([path, (await fetch(signs + path)).ok]).toEqual([path, true]);
    expect([path, (await fetch(new URL(path, signs))).status]).toEqual([path, 404]);
  }
  expect((await fetch(`${signs}/api/v1/schedules`)).status).toBe(404);
  const metrics = await (await fetch(`${signs}/metrics`)).text();
  expect(metrics).toContain('firelock_calls_refused_total{reason="unknown"} 2\n');

  // Neither of the two ports is called by a target.
  for (const url of [signs, daemon.url]) {
    const target = { type: 'http', url: `${url}/healthz` };
    const submitted = await daemon.call('POST', `${BASE}/api/v1/runs`, { target }, headers);
    const { id } = submitted.body as { id: string };
    const error = await until(async () => {
      const { body } = await daemon.call('GET', `${BASE}/api/v1/runs/${id}`, undefined, headers);
      return (body as { error: { kind: string } | null }).error;
    });
    expect(error).toMatchObject({ kind: 'blocked' });
  }

  const taken = spawnDaemon({
    DATABASE_URL: database.url,
    PORT: '0',
    FIRELOCK_METRICS_PORT: new URL(signs).port,
  });
  expect(await taken.exited).toBe(1);
  expect(taken.log().at(-1)?.msg).toMatch(
    /^port \d+ of 127\.0\.0\.1 is taken; set FIRELOCK_METRICS_PORT to another one$/,
  );

  daemon.signal('SIGTERM');
  expect(await daemon.exited).toBe(0);
  for (const secret of [first, second]) expect(daemon.lines.join('\n')).not.toContain(secret.token);
});
