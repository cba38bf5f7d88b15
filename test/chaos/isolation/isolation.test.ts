// @module-tag long
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NEEDS_LINUX } from '../cluster/instance.ts';
import { BURDENS } from './burdens.ts';
import { runIsolation } from './isolation-campaign.ts';

test.for([...BURDENS])('$title: all others fire', async (burden, { skip }) => {
  if (process.platform !== 'linux') skip(NEEDS_LINUX);
  const [result] = await runIsolation({
    burdens: [burden],
    seconds: 5,
    rounds: 1,
    scale: 0.01,
    root: join(import.meta.dirname, '..', '..', '..'),
    say: () => undefined,
  });
  const [round] = result?.rounds ?? [];
  expect(round?.beside.fires.missing).toBe(0);
  expect(round?.facts.filter(({ holds }) => !holds)).toEqual([]);
});
