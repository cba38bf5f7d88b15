import { expect, it } from 'vitest';
import { inTurn } from '../../web/src/api/turns.ts';

it('two reads are under way at once, the others follow in their order, and one that fails keeps no place', async () => {
  const begun: number[] = [];
  const end = new Map<number, (failed: boolean) => void>();
  const read = (n: number) =>
    inTurn(
      () =>
        new Promise<number>((resolve, reject) => {
          begun.push(n);
          end.set(n, (failed) => {
            if (failed) reject(new Error('refused'));
            else resolve(n);
          });
        }),
    );
  const reads = [1, 2, 3, 4, 5].map(read);
  expect(begun).toEqual([1, 2]);
  end.get(2)?.(true);
  await expect(reads[1]).rejects.toThrow('refused');
  expect(begun).toEqual([1, 2, 3]);
  for (const n of [1, 3]) end.get(n)?.(false);
  await Promise.all([reads[0], reads[2]]);
  expect(begun).toEqual([1, 2, 3, 4, 5]);
  for (const n of [4, 5]) end.get(n)?.(false);
  expect(await Promise.all(reads.slice(3))).toEqual([4, 5]);
  const last = [6, 7].map(read);
  expect(begun.slice(5)).toEqual([6, 7]);
  for (const n of [6, 7]) end.get(n)?.(false);
  await Promise.all(last);
});
