import assert from 'node:assert/strict';
import { EVERY_SECOND } from '../support/fires.ts';
import type { Receiver } from '../support/receiver.ts';
import { HUNG_AFTER_MS, until } from '../support/until.ts';
import { within } from '../support/within.ts';
import { type Container, GRACE_SECONDS, startContainer } from './container.ts';
import type { Podman } from './podman.ts';

/** Twice on one volume; the first container is killed with its PostgreSQL, the second one ends as it should. */
export async function livesOnVolume(podman: Podman, receiver: Receiver, containers: Container[]): Promise<void> {
  const start = async (name: string) => {
    const container = await startContainer(podman, name, { volume: 'firelock-lite' });
    containers.push(container);
    return container;
  };
  const isFiring = async () => {
    const before = receiver.arrivals.length;
    const isNew = () => receiver.arrivals.slice(before).some(({ path }) => path === '/lite') || null;
    await until(isNew, HUNG_AFTER_MS);
  };
  const first = await start('lite-first');
  assert.match(first.lines.join('\n'), /for trials, not for production/);
  await first.put('lite', { cron: EVERY_SECOND, target: { type: 'http', url: `${receiver.url}/lite` } });
  await isFiring();
  podman.ask('kill', '--signal=KILL', first.name);
  assert.equal(await within(HUNG_AFTER_MS, first.exited, 'it was not killed'), 137);
  const second = await start('lite-second');
  await isFiring();
  podman.ask('stop', `--time=${GRACE_SECONDS}`, second.name);
  assert.equal(await within(HUNG_AFTER_MS, second.exited, 'it did not end'), 0);
  assert.match(second.lines.join('\n'), /PostgreSQL stopped/);
}
