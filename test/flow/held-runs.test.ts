import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createHeldRuns } from '../../src/flow/held-runs.ts';
import type { ClaimedRun } from '../../src/store/claims.ts';

function claimOf(id: string, attempt: number, instanceId = 'a'): ClaimedRun {
  return {
    id,
    instanceId,
    scheduledFor: 0,
    scheduleUid: randomUUID(),
    scheduleVersion: 1,
    scheduleId: 's',
    trigger: 'schedule',
    lane: 'http http://127.0.0.1',
    dueAt: 0,
    attempt,
    failures: 0,
    recoveries: 0,
    ownPayload: null,
    parentRunId: null,
    hasDependencies: false,
    hasDependents: false,
    firstClaimedAt: 0,
    wasHandedOff: false,
    claimedAt: 0,
    latenessMs: null,
    recoveredAt: null,
    inDoubtUntil: null,
    lookups: 0,
    confirm: false,
  };
}

const attemptsOf = (claims: readonly ClaimedRun[]) => claims.map(({ id, attempt }) => `${id}${attempt}`);

describe('of the claims of one run that a process holds', () => {
  it('the first is acted on at once, and nothing is left when it is given up', () => {
    const held = createHeldRuns();
    const only = claimOf('r', 1);
    expect(held.take(only)).toBe(true);
    expect([held.holds('r', 1), held.holds('r', 2), held.holds('other', 1)]).toEqual([true, false, false]);
    expect(held.waiting()).toEqual([]);
    expect(held.drop(only)).toBeNull();
    expect(held.holds('r', 1)).toBe(false);
    expect(held.take(claimOf('r', 2))).toBe(true);
  });

  it('three are acted on one after the other, in their order, and all are held', () => {
    const held = createHeldRuns();
    const [first, second, third] = [claimOf('r', 1), claimOf('r', 2), claimOf('r', 3)];
    expect([held.take(first), held.take(second), held.take(third)]).toEqual([true, false, false]);
    expect(attemptsOf(held.waiting())).toEqual(['r2', 'r3']);
    expect([1, 2, 3, 4].map((attempt) => held.holds('r', attempt))).toEqual([true, true, true, false]);

    const next = held.drop(first);
    expect(next).toEqual({ ...second, confirm: true });
    expect(attemptsOf(held.waiting())).toEqual(['r3']);
    expect([1, 2, 3].map((attempt) => held.holds('r', attempt))).toEqual([false, true, true]);

    const last = next && held.drop(next);
    expect(last).toEqual({ ...third, confirm: true });
    expect(held.waiting()).toEqual([]);
    expect(last && held.drop(last)).toBeNull();
    expect([1, 2, 3].map((attempt) => held.holds('r', attempt))).toEqual([false, false, false]);
  });

  it('one that waits can be given up without ending the one that is acted on', () => {
    const held = createHeldRuns();
    const [first, second, third] = [claimOf('r', 1), claimOf('r', 2), claimOf('r', 3)];
    for (const claim of [first, second, third]) held.take(claim);
    expect(held.drop(second)).toBeNull();
    expect([1, 2, 3].map((attempt) => held.holds('r', attempt))).toEqual([true, false, true]);
    expect(attemptsOf(held.waiting())).toEqual(['r3']);
    expect(held.drop(first)).toEqual({ ...third, confirm: true });
    expect(held.waiting()).toEqual([]);
  });

  it('all that wait can be given up, and the next begins anew once the first is', () => {
    const held = createHeldRuns();
    const [first, second] = [claimOf('r', 1), claimOf('r', 2)];
    for (const claim of [first, second]) held.take(claim);
    for (const claim of held.waiting()) expect(held.drop(claim)).toBeNull();
    expect(held.drop(first)).toBeNull();
    expect(held.take(claimOf('r', 3))).toBe(true);
  });

  it('one that was given up already takes none of the others with it', () => {
    const held = createHeldRuns();
    const [first, second] = [claimOf('r', 1), claimOf('r', 2)];
    for (const claim of [first, second]) held.take(claim);
    expect(held.drop(first)).toMatchObject({ attempt: 2 });
    expect(held.drop(first)).toBeNull();
    expect(held.holds('r', 2)).toBe(true);
    expect(held.take(claimOf('r', 3))).toBe(false);
  });
});

it('claims of different runs do not wait for each other', () => {
  const held = createHeldRuns();
  const [one, other] = [claimOf('r', 1), claimOf('q', 1)];
  expect([held.take(one), held.take(other)]).toEqual([true, true]);
  held.take(claimOf('r', 2));
  held.take(claimOf('q', 2, 'b'));
  expect(attemptsOf(held.waiting()).sort()).toEqual(['q2', 'r2']);
  expect(held.drop(one)).toMatchObject({ id: 'r', attempt: 2, instanceId: 'a' });
  expect(held.drop(other)).toMatchObject({ id: 'q', attempt: 2, instanceId: 'b' });
});
