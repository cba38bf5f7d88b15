// @module-tag long
import { expect, it } from 'vitest';
import { newToken } from '../api/access/support.ts';
import { startStage } from './browser.ts';

it('a visitor without a token is asked for one, and in the end sees who they are and what became of the runs', async (context) => {
  const { secret, known } = newToken('grace', 'viewer');
  const line = `grace:viewer:${known.hash.toString('hex')}`;
  const { open } = await startStage(context, { FIRELOCK_API_TOKENS: line, FIRELOCK_BASE_PATH: '/ops/cron' });
  const { page, faults } = await open('/', { expected: [401] });
  await page.getByLabel('Token').waitFor();
  // Calls without a valid token are counted, and refused when there are too many.
  const asked = await page.evaluate<string[]>(
    `performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => name.includes('/api/'))`,
  );
  expect(asked).toEqual([expect.stringMatching(/\/ops\/cron\/api\/v1\/me$/)]);
  await page.getByLabel('Token').fill('flk_nonsense');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('firelock does not know this token').waitFor();
  await page.getByLabel('Token').fill(secret);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('grace', { exact: false }).waitFor();
  await page.getByRole('link', { name: 'Runs' }).click();
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/ops/cron/runs');
  await page.reload();
  await page.getByRole('heading', { name: 'Runs', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in to firelock' }).waitFor();
  expect(faults).toEqual([]);
});
