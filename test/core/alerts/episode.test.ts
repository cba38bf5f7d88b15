import { describe, expect, it } from 'vitest';
import { type Cause, type Known, judgeCauses } from '../../../src/core/alerts/episode.ts';
import { permutationsOf } from '../../support/permutations.ts';

const HEALTHY: Known = { isEnabled: true, isPausedByFirelock: false, lastSuccessAt: null, open: new Map() };
const NOTHING = { opened: [], brokenAgain: [], closed: [] };

const breaks = (at: number, alertKind: Cause['alertKind'] = 'failed'): Cause => ({
  ...{ kind: 'breaks', alertKind, at },
  ...{ runId: `run-${at}`, count: 0 },
});
const heals = (at: number, alertKind: Cause['alertKind'] = 'failed'): Cause => ({
  ...{ kind: 'heals', alertKind, at },
  ...{ runId: null, count: 0 },
});
const open = (brokenAt: number): Known => ({
  ...HEALTHY,
  open: new Map([['failed', { id: 'open', brokenAt }]]),
});

/** What is open once each of them was judged by itself. */
function openAfter(causes: readonly Cause[], lastSuccessAt: number): Known['open'] {
  let known: Known = { ...HEALTHY, lastSuccessAt };
  for (const cause of causes) {
    const { opened, brokenAgain, closed } = judgeCauses(known, [cause]);
    const episodes = new Map(known.open);
    for (const one of opened) episodes.set('failed', { id: 'new', brokenAt: one.brokenAt });
    for (const one of brokenAgain) episodes.set('failed', one);
    if (closed.length > 0) episodes.delete('failed');
    known = { ...known, open: episodes };
  }
  return known.open;
}

describe('of the causes of one schedule', () => {
  it('the first that breaks opens an episode, and the later ones belong to it', () => {
    expect(judgeCauses(HEALTHY, [breaks(10), breaks(30), breaks(20)])).toEqual({
      ...NOTHING,
      opened: [{ cause: breaks(10), brokenAt: 30 }],
    });
    expect(judgeCauses(open(10), [breaks(20)])).toEqual({
      ...NOTHING,
      brokenAgain: [{ id: 'open', brokenAt: 20 }],
    });
  });

  it('what heals ends an open episode, unless it broke later', () => {
    expect(judgeCauses(open(10), [heals(20)])).toEqual({
      ...NOTHING,
      closed: [{ id: 'open', kind: 'failed', until: 20 }],
    });
    expect(judgeCauses(open(30), [heals(20)])).toEqual(NOTHING);
    expect(judgeCauses(open(10), [heals(20, 'late')])).toEqual(NOTHING);
  });

  it('what broke and was healed since opens nothing, whether both come at once or the success is known', () => {
    expect(judgeCauses(HEALTHY, [heals(20), breaks(10)])).toEqual(NOTHING);
    expect(judgeCauses({ ...HEALTHY, lastSuccessAt: 20 }, [breaks(10)])).toEqual(NOTHING);
    expect(judgeCauses({ ...HEALTHY, lastSuccessAt: 5 }, [breaks(10)]).opened).toHaveLength(1);
  });

  it('kinds do not mix', () => {
    const judged = judgeCauses(open(10), [breaks(11, 'late'), heals(12), breaks(13, 'paused')]);
    expect(judged.opened.map(({ cause }) => cause.alertKind)).toEqual(['late']);
    expect(judged.closed).toEqual([{ id: 'open', kind: 'failed', until: 12 }]);
  });

  it('a schedule that a person paused opens nothing, one that firelock paused does', () => {
    const byHand = { ...HEALTHY, isEnabled: false };
    expect(judgeCauses(byHand, [breaks(10)])).toEqual(NOTHING);
    const byFirelock = { ...byHand, isPausedByFirelock: true };
    const kinds = judgeCauses(byFirelock, [breaks(10), breaks(11, 'paused')]).opened;
    expect(kinds.map(({ cause }) => cause.alertKind)).toEqual(['failed', 'paused']);
  });

  it('the end is the same in whatever order instances see to them, one by one', () => {
    const causes = [breaks(10), heals(20), breaks(30), breaks(40), heals(50)];
    for (const order of permutationsOf(causes)) expect(openAfter(order, 50).size).toBe(0);
    for (const order of permutationsOf([breaks(10), heals(20), breaks(30)]))
      expect([...openAfter(order, 20).values()]).toEqual([{ id: 'new', brokenAt: 30 }]);
  });
});
