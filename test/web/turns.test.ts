import { expect, it } from 'vitest';
import { inTurn } from '../../web/src/api/turns.ts';

it('three reads are under way at once, the others follow in their order, and one that fails keeps no place', async () => {
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
  const reads = [1, 2, 3, 4, 5, 6].map(read);
  expect(begun).toEqual([1, 2, 3]);
  end.get(2)?.(true);
  await expect(reads[1]).rejects.toThrow('refused');
  expect(begun).toEqual([1, 2, 3, 4]);
  for (const n of [1, 3, 4]) end.get(n)?.(false);
  await Promise.all([reads[0], reads[2], reads[3]]);
  expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
  for (const n of [5, 6]) end.get(n)?.(false);
  expect(await Promise.all(reads.slice(4))).toEqual([5, 6]);
  const last = [7, 8, 9].map(read);
  expect(begun.slice(6)).toEqual([7, 8, 9]);
  for (const n of [7, 8, 9]) end.get(n)?.(false);
  await Promise.all(last);
});
