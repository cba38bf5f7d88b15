// @module-tag long
import { expect, it } from 'vitest';
import { startStage } from './browser.ts';

it('a banner on every page says that an instance only observes, and what ends that', async (context) => {
  const { open } = await startStage(context, { FIRELOCK_OBSERVE: '1' });
  const { page, faults } = await open('/');
  const banner = page.getByRole('status').filter({ hasText: 'This instance only observes' });
  await banner.waitFor();
  expect(await banner.innerText()).toMatch(/because FIRELOCK_OBSERVE is set.* until firelock take-over/);
  expect(faults).toEqual([]);
});
