import { expect, it } from 'vitest';
import { createPageSize } from '../../../src/runtime/loop/page-size.ts';

it('pages get smaller as long as they are too much, down to one row, and larger again afterwards', async () => {
  const page = createPageSize(2_000);
  const tried: number[] = [];
  let bearable = 20;
  const work = (limit: number) => {
    tried.push(limit);
    return limit > bearable ? Promise.reject(new Error('out of time')) : Promise.resolve(limit);
  };
  for (let pass = 0; pass < 5; pass += 1) await page.fit(work).catch(() => undefined);
  expect(tried).toEqual([2_000, 500, 125, 31, 7]);
  bearable = 0;
  for (let pass = 0; pass < 3; pass += 1) await page.fit(work).catch(() => undefined);
  bearable = Infinity;
  for (let pass = 0; pass < 12; pass += 1) await page.fit(work);
  expect(tried.slice(5)).toEqual([14, 3, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_000]);
});
