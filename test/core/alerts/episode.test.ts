import { describe, expect, it } from 'vitest';
import type { AlertKind } from '../../../src/core/alerts/alert.ts';
import { type Cause, type Known, alertChanges, nextLookAt, soonerLook } from '../../../src/core/alerts/episode.ts';
import { permutationsOf } from '../../support/permutations.ts';

const NOW = 1_000;
const WELL: Known = {
  ...{
    isEnabled: true,
    isPausedByFirelock: false,
    resumedAt: null,
    isOver: false,
    lastFireAt: null,
    error: null,
    calendar: null,
  },
  ...{ lateSince: null, expect: null, wellAt: new Map(), open: new Map(), over: new Map() },
};
const NOTHING = { opened: [], brokenAgain: [], closed: [] };

const breaks = (at: number, alertKind: AlertKind = 'failed'): Cause => ({
  ...{ kind: 'breaks', alertKind, at },
  ...{ runId: `run-${at}`, count: 0 },
});
const heals = (at: number, alertKind: AlertKind = 'failed'): Cause => ({
  ...{ kind: 'heals', alertKind, at },
  ...{ runId: null, count: 0 },
});
const well = (at: number, kind: AlertKind = 'failed'): Partial<Known> => ({ wellAt: new Map([[kind, at]]) });
const open = (brokenAt: number, kind: AlertKind = 'failed'): Partial<Known> => ({
  open: new Map([[kind, { id: 'open', brokenAt, failures: 1 }]]),
});
const judge = (known: Partial<Known>, ...causes: Cause[]) => alertChanges({ ...WELL, ...known }, causes, NOW);
const closed = (
  until: number,
  { overBy = null, kind = 'failed' }: { overBy?: string | null; kind?: AlertKind } = {},
) => ({
  ...NOTHING,
  closed: [{ id: 'open', kind, until, overBy }],
});

/** What is open once each of them was judged by itself, with all that runs show known all the time. */
function openAfter(causes: readonly Cause[], lastSuccessAt: number): Known['open'] {
  let known: Known = { ...WELL, ...well(lastSuccessAt) };
  for (const cause of causes) {
    const { opened, brokenAgain, closed: over } = alertChanges(known, [cause], NOW);
    const episodes = new Map(known.open);
    if (over.length > 0) episodes.delete('failed');
    for (const one of opened) episodes.set('failed', { id: 'new', brokenAt: one.brokenAt, failures: one.failures });
    for (const one of brokenAgain) episodes.set('failed', one);
    known = { ...known, open: episodes };
  }
  return known.open;
}

describe('a calendar that ends', () => {
  const calendar = { id: 'holidays', validUntil: '2026-12-31' };
  it('opens an episode, which says nothing more while it is open, and is over once all its calendars go on', () => {
    const { opened } = judge({ calendar });
    expect(opened.map(({ cause: { alertKind, at }, again }) => [alertKind, at, again])).toEqual([
      ['calendar', NOW, null],
    ]);
    expect(judge({ calendar, ...open(10, 'calendar') })).toEqual(NOTHING);
    expect(judge(open(10, 'calendar'))).toEqual(closed(NOW, { kind: 'calendar' }));
  });

  it('concerns nobody where the schedule is paused, or fires no more', () => {
    for (const known of [{ isEnabled: false }, { isEnabled: false, isPausedByFirelock: true }, { isOver: true }]) {
      expect(judge({ calendar, ...known })).toEqual(NOTHING);
      expect(judge({ calendar, ...known, ...open(10, 'calendar') }).closed).toHaveLength(1);
    }
  });
});

describe('of the causes of one schedule', () => {
  it('the first that breaks opens an episode, and the later ones belong to it', () => {
    expect(judge({}, breaks(10), breaks(30), breaks(20))).toEqual({
      ...NOTHING,
      opened: [{ cause: breaks(10), brokenAt: 30, failures: 3, again: null }],
    });
    expect(judge(open(10), breaks(20), breaks(30))).toEqual({
      ...NOTHING,
      brokenAgain: [{ id: 'open', kind: 'failed', brokenAt: 30, failures: 3, before: 1 }],
    });
  });

  it('what heals ends an open episode, unless it broke later', () => {
    expect(judge(open(10), heals(20))).toEqual(closed(20));
    expect(judge({ ...open(10), ...well(20) })).toEqual(closed(20));
    expect(judge(open(30), heals(20))).toEqual(NOTHING);
    expect(judge(open(10), heals(20, 'late'))).toEqual(NOTHING);
    expect(judge(open(10), heals(20), breaks(30))).toEqual({
      ...NOTHING,
      brokenAgain: [{ id: 'open', kind: 'failed', brokenAt: 30, failures: 1, before: 0 }],
    });
  });

  it('what broke and was healed since opens nothing, whether both come at once or a run shows it', () => {
    expect(judge({}, heals(20), breaks(10))).toEqual(NOTHING);
    for (const kind of ['failed', 'slow', 'unstarted'] as const) {
      const known = {
        ...well(20, kind),
        expect: { startWithinSeconds: 1, finishWithinSeconds: 1, atLeastSeconds: null, result: null },
      };
      expect(judge(known, breaks(10, kind))).toEqual(NOTHING);
      expect(judge(known, breaks(20, kind))).toEqual(NOTHING);
      expect(judge(known, breaks(21, kind)).opened).toHaveLength(1);
    }
  });

  it('kinds do not mix', () => {
    const judged = judge({ ...open(10), lateSince: 11 }, heals(12), breaks(13, 'error'));
    expect(judged.opened.map(({ cause }) => cause.alertKind)).toEqual(['late']);
    expect(judged.closed).toMatchObject([{ id: 'open', kind: 'failed', until: 12 }]);
  });

  it('a schedule that a person paused opens nothing, also by what came before it was resumed; one that firelock paused does', () => {
    const byHand = { isEnabled: false };
    expect(judge(byHand, breaks(10))).toEqual(NOTHING);
    expect(judge({ resumedAt: 20 }, breaks(20), breaks(10, 'missed'))).toEqual(NOTHING);
    expect(judge({ resumedAt: 20 }, breaks(21)).opened).toHaveLength(1);
    const byFirelock = { ...byHand, isPausedByFirelock: true };
    const kinds = judge(byFirelock, breaks(10), breaks(11, 'paused')).opened;
    expect(kinds.map(({ cause }) => cause.alertKind)).toEqual(['failed', 'paused']);
    expect(judge({ ...byHand, ...open(10) })).toEqual(closed(NOW, { overBy: 'a person paused it' }));
  });

  it('the end is the same in whatever order instances see to them, one by one', () => {
    const causes = [breaks(10), heals(20), breaks(30), breaks(40), heals(50)];
    for (const order of permutationsOf(causes)) expect(openAfter(order, 50).size).toBe(0);
    for (const order of permutationsOf([breaks(10), heals(20), breaks(30)]))
      expect([...openAfter(order, 20).values()]).toMatchObject([{ id: 'new', brokenAt: 30 }]);
  });
});

describe('an episode', () => {
  it('of a schedule that is late is open while it is, is over by a success whenever that was, and begins anew with the next', () => {
    expect(judge({ lateSince: 10 }).opened).toEqual([
      { cause: { ...breaks(10, 'late'), runId: null }, brokenAt: 10, failures: 1, again: null },
    ]);
    const late = open(10, 'late');
    expect(judge({ ...late, lateSince: 10 })).toEqual(NOTHING);
    expect(judge({ ...late, ...well(9, 'late') })).toEqual(closed(9, { kind: 'late' }));
    const anew = judge({ ...late, ...well(15, 'late'), lateSince: 300_016 });
    expect(anew.closed).toMatchObject([{ id: 'open', until: 15, overBy: null }]);
    expect(anew.opened).toMatchObject([{ brokenAt: 300_016, again: null }]);
    // What follows it follows its opening, also where it is the same one.
    const again = judge({ ...late, ...well(15, 'late'), lateSince: 75 });
    expect(again).toMatchObject({ closed: [], opened: [{ brokenAt: 75, again: 'open' }], brokenAgain: [] });
    // Under another bound it is late since another moment, in the same episode.
    expect(judge({ ...late, lateSince: 75 })).toEqual({
      ...NOTHING,
      brokenAgain: [{ id: 'open', kind: 'late', brokenAt: 75, failures: 1, before: 1 }],
    });
    expect(judge({ ...late, lateSince: 5 })).toEqual(NOTHING);
  });

  it('that opens within five minutes of its end is the same one, and later another one', () => {
    const over = (until: number) => ({ over: new Map([['failed' as const, { id: 'over', until }]]) });
    const againAt = (at: number, until: number) =>
      judge({ ...over(until), ...well(until) }, breaks(at)).opened.map(({ again }) => again);
    expect(againAt(300_010, 10)).toEqual(['over']);
    expect(againAt(300_011, 10)).toEqual([null]);
    expect(judge(over(10), breaks(20, 'slow'), breaks(20, 'error')).opened).toEqual([]);
    expect(judge({ ...over(10), error: 'nonsense' }, breaks(20, 'error')).opened).toMatchObject([{ again: null }]);
  });

  it('is over where its state cannot be any more, and says why', () => {
    const overBy = (known: Partial<Known>, kind: AlertKind) => judge({ ...known, ...open(10, kind) }).closed[0]?.overBy;
    expect(overBy({}, 'late')).toBe('it may be longer without a success now');
    expect(overBy({ isOver: true }, 'late')).toBe('nothing is left to fire');
    expect(overBy({ isEnabled: false, isPausedByFirelock: true }, 'late')).toBe('firelock paused it');
    expect(overBy({ isOver: true }, 'missed')).toBe('nothing is left to fire');
    const one = { startWithinSeconds: null, finishWithinSeconds: 1, atLeastSeconds: null, result: null };
    expect(overBy({ expect: one }, 'unstarted')).toBe('no such bound is left');
    expect(overBy({ expect: one }, 'slow')).toBeUndefined();
    expect(overBy({ isEnabled: false, isPausedByFirelock: true }, 'failed')).toBeUndefined();
  });

  it('of missed fires opens in every case, and is over with the next fire or what was caught up with', () => {
    expect(judge({ isOver: true, ...well(20, 'missed') }, breaks(10, 'missed')).opened).toHaveLength(1);
    expect(judge({ ...open(10, 'missed'), lastFireAt: 10 })).toEqual(NOTHING);
    expect(judge({ ...open(10, 'missed'), lastFireAt: 11 })).toEqual(closed(11, { kind: 'missed' }));
    expect(judge({ ...open(10, 'missed'), ...well(12, 'missed') })).toEqual(closed(12, { kind: 'missed' }));
  });

  it('of a pause by firelock is over once it is enabled, and one of an error once it is planned', () => {
    expect(judge(open(10, 'paused'))).toEqual(closed(NOW, { kind: 'paused' }));
    expect(judge({ ...open(10, 'error'), error: 'nonsense' })).toEqual(NOTHING);
    expect(judge(open(10, 'error'))).toEqual(closed(NOW, { kind: 'error' }));
    expect(judge({}, breaks(10, 'error'), breaks(10, 'paused'))).toEqual(NOTHING);
  });
});

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;
const DAY = 24 * HOUR;

/** When an episode that was opened at 0 is looked at within a day in which it stays open. */
function looksOfADay(kind: AlertKind, nextFireAt: number | null, since = 0): number[] {
  const looks: number[] = [];
  let next = nextLookAt({ kind, since, nextFireAt, isFresh: true }, 0);
  while (next !== null && next < DAY) {
    looks.push(next);
    next = nextLookAt({ kind, since, nextFireAt, isFresh: false }, next);
  }
  return looks;
}

describe('an episode that is open for a day', () => {
  it.each([
    ['failed', DAY],
    ['late', DAY],
    ['missed', DAY],
    ['error', DAY],
    ['missed', null],
  ] as const)('is looked at some dozens of times at most: %s, the next fire at %s', (kind, nextFireAt) => {
    const looks = looksOfADay(kind, nextFireAt);
    expect(looks.length).toBeGreaterThanOrEqual(20);
    expect(looks.length).toBeLessThan(60);
  });

  it('and that a fire ends which is due and not planned, as in maintenance, is looked at every five minutes', () => {
    for (const kind of ['missed', 'error'] as const) {
      const looks = looksOfADay(kind, 0);
      expect(looks.length).toBeLessThan(300);
      expect(Math.max(...looks.map((at, index) => at - (looks[index - 1] ?? 0)))).toBe(300 * SECOND);
    }
  });

  it('and that an enabling ends is not looked at', () => {
    expect(looksOfADay('paused', DAY)).toEqual([]);
  });

  it('and that a fire ends is looked at a second after it', () => {
    expect(looksOfADay('missed', 600 * SECOND).slice(0, 2)).toEqual([20 * SECOND, 601 * SECOND]);
    expect(looksOfADay('error', 5 * SECOND)[0]).toBe(6 * SECOND);
  });

  it('is looked at soon, since when it ever is: what ends it may just be written', () => {
    for (const kind of ['failed', 'late', 'slow', 'unstarted', 'missed'] as const)
      expect(looksOfADay(kind, DAY, -DAY)[0]).toBe(20 * SECOND);
  });
});

it('a look that is to come stays, unless the next one is sooner', () => {
  expect(soonerLook(20, 30, 10)).toBe(20);
  expect(soonerLook(20, 15, 10)).toBe(15);
  expect(soonerLook(10, 30, 10)).toBe(30);
  expect(soonerLook(null, 30, 10)).toBe(30);
  expect(soonerLook(20, null, 10)).toBeNull();
});
