// @module-tag long
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NEEDS_LINUX } from '../cluster/instance.ts';
import { runFailovers } from './failover-campaign.ts';
import { findPrograms, HOW_TO_INSTALL } from './patroni-cluster.ts';

const TOO_LONG = 'both take four minutes together, more than CI has: npm run test:long, or npm run failover';

const SHORT = {
  ...{ minutes: 0, seed: 20261124, schedules: 20, lagSeconds: 1 },
  root: join(import.meta.dirname, '..', '..', '..'),
  say: () => undefined,
};

test('nothing is lost or repeated when a synchronous primary dies, freezes and changes places', async ({ skip }) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  if (process.env['CI'] !== undefined) skip(TOO_LONG);
  const programs = findPrograms();
  if ('missing' in programs) return skip(`no ${programs.missing.join(', ')}. ${HOW_TO_INSTALL}`);
  const kinds = ['kill', 'freeze', 'switchover'] as const;
  const report = await runFailovers({ ...SHORT, programs, kinds, mode: 'hosts', replication: 'sync' });
  expect(report).toMatchObject({ ok: true, lost: 0, plannedTwice: 0, atMostOnceRepeats: 0 });
  expect(report.failovers.map(({ kind }) => kind)).toEqual(kinds);
  expect(report.fires).toBeGreaterThan(500);
});

test('what an asynchronous failover has lost is sent again, and is told', async ({ skip }) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  if (process.env['CI'] !== undefined) skip(TOO_LONG);
  const programs = findPrograms();
  if ('missing' in programs) return skip(`no ${programs.missing.join(', ')}. ${HOW_TO_INSTALL}`);
  const kinds = ['laggingKill'] as const;
  const report = await runFailovers({
    ...{ ...SHORT, programs, kinds, lagSeconds: 2 },
    ...{ mode: 'haproxy', replication: 'async' },
  });
  expect(report).toMatchObject({ ok: true, lost: 0, plannedTwice: 0 });
  expect(report.atMostOnceRepeats).toBeGreaterThan(0);
  expect(report.told.metric).toBeGreaterThan(0);
  expect(report.edits).toMatchObject({ lostAfter: 0, wrong: 0 });
  expect(report.resumed).toMatchObject({ atMostOnceRepeats: 0 });
});
