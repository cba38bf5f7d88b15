import { describe, expect, it } from 'vitest';
import { ClaimBuffer } from '../../../src/flow/dispatch/claim-buffer.ts';
import { LaneBook } from '../../../src/flow/dispatch/lane.ts';
import { claimedRun } from '../../support/claims.ts';

function bufferOf() {
  const book = new LaneBook();
  const buffer = new ClaimBuffer(book);
  const put = (id: string, attempt: number, instanceId = 'a') => {
    const run = claimedRun({ id, attempt, instanceId });
    book.addClaims(book.of(run.lane), 1);
    return buffer.put(run);
  };
  const waiting = () => buffer.inState('awaitsEarlier').map(({ run: { id, attempt } }) => `${id}${attempt}`);
  const claimed = (id: string, attempts: number[]) => attempts.filter((attempt) => buffer.hasClaim(id, attempt));
  return { book, buffer, put, waiting, claimed };
}

describe('among the claims of one run that a process has', () => {
  it('the first is acted on at once, and nothing is left when it is given up', () => {
    const { book, buffer, put, waiting, claimed } = bufferOf();
    const only = put('r', 1);
    expect(only.state).toBe('awaitsDefinition');
    expect([claimed('r', [1, 2]), claimed('other', [1])]).toEqual([[1], []]);
    expect(waiting()).toEqual([]);
    expect(buffer.drop(only)).toBeNull();
    expect([claimed('r', [1]), book.all.claims]).toEqual([[], 0]);
    expect(put('r', 2).state).toBe('awaitsDefinition');
  });

  it('three are acted on one after the other, in their order, and all are claimed', () => {
    const { buffer, put, waiting, claimed } = bufferOf();
    const [first, second, third] = [put('r', 1), put('r', 2), put('r', 3)];
    expect(waiting()).toEqual(['r2', 'r3']);
    expect(claimed('r', [1, 2, 3, 4])).toEqual([1, 2, 3]);

    expect(buffer.drop(first)).toBe(second);
    expect(second).toMatchObject({ state: 'awaitsDefinition', run: { attempt: 2, confirm: true } });
    expect(waiting()).toEqual(['r3']);
    expect(claimed('r', [1, 2, 3])).toEqual([2, 3]);

    expect(buffer.drop(second)).toBe(third);
    expect(third.run).toMatchObject({ attempt: 3, confirm: true });
    expect(waiting()).toEqual([]);
    expect(buffer.drop(third)).toBeNull();
    expect(claimed('r', [1, 2, 3])).toEqual([]);
  });

  it('one that waits can be given up without ending the one that is acted on', () => {
    const { buffer, put, waiting, claimed } = bufferOf();
    const [first, second, third] = [put('r', 1), put('r', 2), put('r', 3)];
    expect(buffer.drop(second)).toBeNull();
    expect(claimed('r', [1, 2, 3])).toEqual([1, 3]);
    expect(waiting()).toEqual(['r3']);
    expect(buffer.drop(first)).toBe(third);
    expect(waiting()).toEqual([]);
  });

  it('all that wait can be given up, and the next begins anew once the first is', () => {
    const { buffer, put } = bufferOf();
    const first = put('r', 1);
    put('r', 2);
    for (const claim of buffer.inState('awaitsEarlier')) expect(buffer.drop(claim)).toBeNull();
    expect(buffer.drop(first)).toBeNull();
    expect(put('r', 3).state).toBe('awaitsDefinition');
  });

  it('one that was given up already takes none of the others with it, and gives no room up twice', () => {
    const { book, buffer, put, claimed } = bufferOf();
    const [first, second] = [put('r', 1), put('r', 2)];
    expect(buffer.drop(first)).toBe(second);
    expect(buffer.drop(first)).toBeNull();
    expect(book.all.claims).toBe(1);
    expect(claimed('r', [2])).toEqual([2]);
    expect(put('r', 3).state).toBe('awaitsEarlier');
  });
});

it('claims of different runs do not wait for each other', () => {
  const { buffer, put, waiting } = bufferOf();
  const [one, other] = [put('r', 1), put('q', 1)];
  expect([one.state, other.state]).toEqual(['awaitsDefinition', 'awaitsDefinition']);
  put('r', 2);
  put('q', 2, 'b');
  expect(waiting().sort()).toEqual(['q2', 'r2']);
  expect(buffer.drop(one)?.run).toMatchObject({ id: 'r', attempt: 2, instanceId: 'a' });
  expect(buffer.drop(other)?.run).toMatchObject({ id: 'q', attempt: 2, instanceId: 'b' });
});
