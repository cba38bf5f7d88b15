import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type postgres from 'postgres';
import { isReady } from '../support/calls.ts';
import { EVERY_SECOND } from '../support/fires.ts';
import type { Receiver } from '../support/receiver.ts';
import { HUNG_AFTER_MS, until } from '../support/until.ts';
import { within } from '../support/within.ts';
import { type Container, stopContainer } from './container.ts';
import type { Podman } from './podman.ts';

interface Scene {
  podman: Podman;
  container: Container;
  receiver: Receiver;
  /** Answers that the target keeps back. */
  held: readonly ServerResponse[];
  sql: postgres.Sql;
}

/** So many milliseconds that two more fires of each schedule become due. */
const MEANWHILE_MS = 2_500;

/** Stops the container while its target keeps answers back, and gives these when it has long been leaving. */
export async function drains({ podman, container, receiver, held, sql }: Scene): Promise<void> {
  const body = { cron: EVERY_SECOND, target: { type: 'http', url: `${receiver.url}/held` } };
  await container.put('held', body);
  await until(() => held.length > 0 || null, HUNG_AFTER_MS);
  const began = Date.now();
  const stopping = stopContainer(podman, container);
  await until(async () => !(await isReady(container.url)) || null, HUNG_AFTER_MS);
  const before = receiver.arrivals.length;
  await sleep(MEANWHILE_MS);
  assert.ok(container.isRunning(), 'it did not wait for the attempts under way');
  for (const response of held) response.end('{}');
  assert.equal(await within(HUNG_AFTER_MS, container.exited, 'it did not end'), 0);
  assert.equal(await within(HUNG_AFTER_MS, stopping.exited, 'podman stop did not end'), 0);
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  console.log(`     attempts under way: ${held.length}; it ended after ${seconds} s`);
  assert.equal(receiver.arrivals.length, before, 'something was sent while it drained');
  const arrived = receiver.arrivals.map(({ body: { runId } }) => runId);
  const [bad] = await sql`
    SELECT (SELECT count(*)::int FROM all_runs
        WHERE id IN ${sql(arrived)} AND NOT (status = 'succeeded' AND attempts = 1)) AS unfinished,
      (SELECT count(*)::int FROM all_runs WHERE claimed_by IS NOT NULL AND status = 'pending') AS claimed`;
  assert.deepEqual({ ...bad }, { unfinished: 0, claimed: 0 });
}
