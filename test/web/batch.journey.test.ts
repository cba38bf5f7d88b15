// @module-tag long
import { expect, it } from 'vitest';
import { layoutOf } from '../../web/src/pages/run/batch-layout.ts';
import { startStage } from './browser.ts';

const target = { type: 'pull', queue: 'etl' };

it('the page of a run draws its batch, by status, leads to the others and to a list of all, and retries what failed for want of one', async (context) => {
  const { open, daemon } = await startStage(context);
  const { body } = await daemon.call('POST', '/api/v1/runs/batch', {
    ...{ name: 'etl', labels: { team: 'bi' } },
    items: [
      { ref: 'load', target, dependsOn: ['eu', 'us'] },
      { ref: 'extract', target },
      { ref: 'eu', target, dependsOn: ['extract'] },
      { ref: 'us', target, dependsOn: ['extract'] },
    ],
  });
  const items = (body as { items: { ref: string; id: string }[] }).items;
  const idOf = (wanted: string) => items.find(({ ref }) => ref === wanted)?.id ?? '';
  await daemon.call('POST', `/api/v1/runs/${idOf('extract')}/cancel`);
  const { page, faults } = await open(`/runs/${idOf('load')}`);
  const graph = page.getByRole('region', { name: 'Runs of the batch' });
  await graph.getByRole('link', { name: 'extract: cancelled' }).waitFor();
  await graph.getByRole('link', { name: 'us: failed' }).waitFor();
  expect(await graph.locator('path').count()).toBe(4);
  expect(await graph.locator('[aria-current]').getAttribute('aria-label')).toBe('load: failed');
  await graph.getByRole('link', { name: 'extract: cancelled' }).click();
  await page.waitForURL(`**/runs/${idOf('extract')}`);
  await page.getByRole('button', { name: 'Retry…' }).click();
  await page.getByLabel('Also the runs that failed for want of it').check();
  await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
  await graph.getByRole('link', { name: 'us: waiting' }).waitFor();
  await page.getByRole('link', { name: 'all in a list' }).click();
  await page.getByRole('region', { name: 'Runs', exact: true }).waitFor();
  expect(await page.getByRole('region', { name: 'Runs', exact: true }).locator('tbody tr').count()).toBe(4);
  expect(faults).toEqual([]);
});

it('each run stands in the column after all that it depends on; of very many runs some are left out, but not the one that is shown', () => {
  const item = (ref: string, ...dependsOn: string[]) => ({
    ref,
    id: ref,
    dependsOn,
    status: 'waiting' as const,
  });
  const { nodes, edges, columns, rows } = layoutOf(
    [item('d', 'c', 'a', 'other'), item('a'), item('b', 'a'), item('c', 'b')],
    'a',
    200,
  );
  expect(nodes.map(({ ref, column, row }) => [ref, column, row])).toEqual([
    ['d', 3, 0],
    ['a', 0, 0],
    ['b', 1, 0],
    ['c', 2, 0],
  ]);
  expect([edges.length, columns, rows]).toEqual([4, 4, 1]);
  const many = Array.from({ length: 1000 }, (_, n) => item(`n${n}`, ...(n === 0 ? [] : [`n${n - 1}`])));
  expect(layoutOf(many, 'n999', 200).nodes.map(({ ref }) => ref)).toEqual([
    ...many.slice(0, 200).map(({ ref }) => ref),
    'n999',
  ]);
});
