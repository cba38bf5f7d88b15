import { describe, expect, test } from 'vitest';
import type { Instant } from '../../../src/core/instant.ts';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import type { Timing } from '../../../src/core/timing/timing.ts';
import {
  MAX_JITTER_MS,
  type Position,
  type VersionSpan,
  createExpectation,
} from '../../../src/core/time/expected-occurrences.ts';
import { fireTimes, lastBetween } from '../../../src/core/time/fire-times.ts';
import { type PlannedRun, type PlanningState, accountFor } from '../../../src/core/time/occurrences.ts';
import { timingOf } from './support.ts';

const A = '00000000-0000-4000-8000-00000000000a';
const B = '00000000-0000-4000-8000-00000000000b';
const FIRST = '00000000-0000-0000-0000-000000000000';

/** Of one day; hh:mm or hh:mm:ss. */
function at(time: string): Instant {
  return Date.parse(`2026-11-20T${time.length === 5 ? `${time}:00` : time}Z`);
}

function clock(instant: Instant): string {
  return new Date(instant).toISOString().slice(11, 19).replace(/:00$/, '');
}

interface GivenSpan {
  version?: number;
  uid?: string;
  since: string;
  until?: string;
  enabled?: boolean;
  timing?: Partial<Timing>;
}

function span({ version = 1, uid = A, since, until, enabled = true, timing: given = {} }: GivenSpan): VersionSpan {
  return {
    uid,
    version,
    identity: { id: 'job', createdAt: at('00:00') },
    enabled,
    timing: timingOf({ cron: '*/10 * * * *', ...given }),
    since: at(since),
    until: until === undefined ? null : at(until),
  };
}

function run(scheduledFor: string, more: Partial<PlannedRun> = {}): PlannedRun {
  const uid = more.uid ?? A;
  const base = { status: 'succeeded', reason: null, coalesced: 0, coalescedFrom: null } as const;
  return {
    id: plannedRunId(uid, at(scheduledFor)),
    uid,
    scheduledFor: at(scheduledFor),
    version: 1,
    ...base,
    ...more,
  };
}

interface GivenPlanning {
  now?: string;
  horizon?: string;
  uid?: string;
  cursor?: string | null;
  inError?: boolean;
  skips?: string[];
  goesOnAfter?: string;
}

function planningAt({
  now = '12:00',
  horizon = '00:00',
  uid = A,
  cursor = null,
  inError = false,
  skips = [],
  goesOnAfter = now,
}: GivenPlanning): PlanningState {
  const nextOccurrenceAt = cursor === null ? null : at(cursor);
  return {
    now: at(now),
    horizon: at(horizon),
    current: { uid, nextOccurrenceAt, inError, goesOnAfter: at(goesOnAfter), skips: new Set(skips.map(at)) },
  };
}

function expectationOf(from: string, to: string, max = 1000, uid = FIRST) {
  return createExpectation({ after: { fireAt: at(from), uid }, to: at(to), max });
}

function expectedOf(spans: readonly VersionSpan[], ...[from, to, max, uid]: Parameters<typeof expectationOf>) {
  const expectation = expectationOf(from, to, max, uid);
  for (const one of spans) Array.from(expectation.add(one));
  return expectation.list();
}

const withVersions = (list: ReturnType<typeof expectedOf>) =>
  list.map(({ fireAt, version }) => `${clock(fireAt)} v${version}`);
const clocksOf = (list: readonly Position[]) => list.map(({ fireAt }) => clock(fireAt));

/** When the occurrence of 10:00 is due. */
const dueOf = (timing: Partial<Timing>) => fireTimes(timingOf(timing), { id: 'job', createdAt: 0 }).dueAt(at('10:00'));

const JITTER = { cron: '0 * * * *', jitterSeconds: 3599 };

/** `10:00 v1 fired` and so on. */
function linesOf(
  spans: readonly VersionSpan[],
  runs: readonly PlannedRun[],
  more: GivenPlanning & { from?: string; to?: string } = {},
) {
  const { from = '10:00', to = '11:00' } = more;
  const inPeriod = runs.filter(({ scheduledFor }) => scheduledFor >= at(from) && scheduledFor < at(to));
  const later = runs.filter(({ scheduledFor, coalesced }) => scheduledFor >= at(to) && coalesced > 0);
  return accountFor(expectedOf(spans, from, to), inPeriod, later, planningAt(more)).map(
    ({ fireAt, state, reason, runId, version }) => {
      const owner = runs.find(({ id }) => id === runId);
      const by = owner && owner.scheduledFor !== fireAt ? ` by ${clock(owner.scheduledFor)}` : '';
      return `${clock(fireAt)} v${version} ${state}${reason === null ? '' : ` ${reason}`}${by}${runId === null ? '' : ' *'}`;
    },
  );
}

describe('what a version explains', () => {
  test('is everything due after it was written, up to and with the moment of the next version', () => {
    const spans = [
      span({ version: 1, since: '10:00', until: '10:30' }),
      span({ version: 2, since: '10:30', timing: { cron: '*/15 * * * *' } }),
    ];
    expect(withVersions(expectedOf(spans, '09:00', '11:01'))).toEqual([
      '10:10 v1',
      '10:20 v1',
      '10:30 v1',
      '10:45 v2',
      '11:00 v2',
    ]);
  });

  test('ends at `to`, and begins after a position', () => {
    const spans = [span({ since: '00:00' })];
    expect(clocksOf(expectedOf(spans, '10:00', '10:20'))).toEqual(['10:00', '10:10']);
    expect(clocksOf(expectedOf(spans, '10:00', '10:20:01'))).toEqual(['10:00', '10:10', '10:20']);
    expect(clocksOf(expectedOf(spans, '10:00', '10:20', 10, A))).toEqual(['10:10']);
    expect(clocksOf(expectedOf(spans, '10:00', '10:20', 1))).toEqual(['10:00']);
  });

  test('moves with the jitter: an occurrence before an edit belongs to the version that is in force when it is due', () => {
    const jitter = { ...JITTER, jitterSeconds: 3600 };
    const due = dueOf(jitter);
    expect(due).toBeGreaterThan(at('10:00'));
    const edited = (offset: number) => {
      const edit = due + offset;
      const first = { ...span({ version: 1, since: '00:00', timing: jitter }), until: edit };
      const second = { ...span({ version: 2, since: '00:00', timing: jitter }), since: edit };
      return expectedOf([first, second], '10:00', '11:00').map(({ version }) => version);
    };
    expect([edited(-1), edited(0), edited(1)]).toEqual([[2], [1], [1]]);
  });

  test('belongs to no version that gave the schedule other fire times after it, whatever their jitter', () => {
    const edit = Math.floor((at('10:00') + dueOf(JITTER)) / 2);
    for (const enabled of [true, false]) {
      const before = { ...span({ since: '00:00', enabled, timing: { cron: '0 * * * *' } }), until: edit };
      for (const second of [true, false]) {
        const behind = {
          ...span({ version: 2, since: '00:00', enabled: second, timing: JITTER }),
          since: edit,
        };
        expect(expectedOf([before, behind], '10:00', '11:00')).toMatchObject([{ version: 1 }]);
      }
    }
  });

  test('whose delay an edit of the fire times cut short belongs to the version before, as one that does not fire by itself', () => {
    const edit = dueOf(JITTER) - 1;
    const before = { ...span({ since: '00:00', timing: JITTER }), until: edit };
    const behind = { ...span({ version: 2, since: '00:00', timing: { cron: '30 * * * *' } }), since: edit };
    const [cut] = expectedOf([before, behind], '10:00', '10:01');
    expect(cut).toMatchObject({ fireAt: at('10:00'), version: 1, enabled: false });
    expect(expectedOf([before, { ...behind, timing: before.timing }], '10:00', '10:01')).toMatchObject([
      { fireAt: at('10:00'), version: 2, enabled: true },
    ]);
  });

  test('comes in order, whatever jitter does to versions that follow each other quickly', () => {
    const spans = [
      span({ version: 1, since: '00:00', until: '10:01', timing: { cron: '0,1 * * * *' } }),
      span({ version: 2, since: '10:01', until: '10:02', timing: { cron: '* * * * *' } }),
      span({ version: 3, since: '10:02', timing: JITTER }),
    ];
    expect(withVersions(expectedOf(spans, '09:30', '11:01'))).toEqual(['10:00 v1', '10:01 v1', '10:02 v2', '11:00 v3']);
  });

  test('for an interval depends on the creation of the schedule', () => {
    const spans = [span({ since: '09:59', timing: { cron: null, everySeconds: 1800 } })];
    expect(clocksOf(expectedOf(spans, '09:00', '11:00'))).toEqual(['10:00', '10:30']);
  });

  test('costs a few steps, however many occurrences lie before it', () => {
    const times = fireTimes(timingOf({ cron: '* * * * * *' }), { id: 'job', createdAt: 0 });
    let asked = 0;
    const counted = { next: (after: Instant) => ((asked += 1), times.next(after)) };
    expect(lastBetween(counted, at('12:00') - MAX_JITTER_MS, at('12:00') - 1)).toBe(at('11:59:59'));
    expect(asked).toBeLessThan(60);
    expect(lastBetween(counted, at('12:00'), at('12:00') + 999)).toBeNull();
    expect(lastBetween(counted, at('12:00') - 1, at('12:00'))).toBe(at('12:00'));
  });

  test('says when enough versions were seen', () => {
    const expectation = expectationOf('10:00', '20:00', 2);
    expect(expectation.reach()).toBe(at('20:00') - 1 + MAX_JITTER_MS);
    Array.from(expectation.add(span({ since: '00:00' })));
    expect(expectation.reach()).toBe(at('10:10') + MAX_JITTER_MS);
  });

  test('is complete for a version that mends one that cannot be planned', () => {
    const expectation = expectationOf('10:00', '10:35', 10);
    const bad = span({ since: '00:00', until: '10:15', timing: { cron: 'soon', jitterSeconds: 60 } });
    expect(() => Array.from(expectation.add(bad))).toThrow();
    Array.from(expectation.add(span({ version: 2, since: '10:15' })));
    expect(clocksOf(expectation.list())).toEqual(['10:20', '10:30']);
  });

  test('throws if it cannot be planned', () => {
    const bad = span({ since: '00:00', timing: { cron: 'soon' } });
    expect(() => expectedOf([bad], '10:00', '11:00')).toThrow();
  });
});

describe('what became of an occurrence', () => {
  const always = [span({ since: '00:00' })];
  const half = { from: '10:00', to: '10:30' };

  test('follows from its own run', () => {
    const runs = [
      run('10:00'),
      run('10:10', { status: 'skipped', reason: 'overlap' }),
      run('10:20', { status: 'skipped', reason: 'missed' }),
      run('10:30', { status: 'skipped', reason: 'limit' }),
      run('10:40', { status: 'cancelled', reason: 'replaced' }),
      run('10:50', { status: 'abandoned', reason: 'age' }),
    ];
    expect(linesOf(always, runs)).toEqual([
      '10:00 v1 fired *',
      '10:10 v1 skipped overlap *',
      '10:20 v1 missed skip *',
      '10:30 v1 missed limit *',
      '10:40 v1 fired *',
      '10:50 v1 fired *',
    ]);
  });

  test('or from the record that stands for it, with the answer of its catch-up', () => {
    const record = (more: Partial<PlannedRun>) => [run('10:20', { coalesced: 2, coalescedFrom: at('10:00'), ...more })];
    const under = (catchUp: Timing['catchUp'], more: Partial<PlannedRun> = {}) =>
      linesOf([span({ since: '00:00', timing: { catchUp } })], record(more), half);
    const both = (reason: string, own: string) => [
      `10:00 v1 missed ${reason} by 10:20 *`,
      `10:10 v1 missed ${reason} by 10:20 *`,
      `10:20 v1 ${own} *`,
    ];
    expect(under('latest')).toEqual(both('latest', 'fired'));
    expect(under('skip', { status: 'skipped', reason: 'missed' })).toEqual(both('skip', 'missed skip'));
    expect(under('all', { status: 'skipped', reason: 'limit' })).toEqual(both('limit', 'missed limit'));
    // Opened again by a backfill; and skipped by `firelock resume`, whatever the catch-up is.
    expect(under('skip')).toEqual(both('skip', 'fired'));
    expect(under('all')).toEqual(both('limit', 'fired'));
    expect(under('all', { version: 2 })).toEqual(both('limit', 'fired'));
    expect(under('latest', { status: 'skipped', reason: 'missed' })).toEqual(both('skip', 'missed skip'));
  });

  test('from a record that lies after the period', () => {
    const runs = [run('11:20', { coalesced: 8, coalescedFrom: at('10:00') })];
    expect(linesOf(always, runs, half)).toEqual([
      '10:00 v1 missed latest by 11:20 *',
      '10:10 v1 missed latest by 11:20 *',
      '10:20 v1 missed latest by 11:20 *',
    ]);
  });

  test('from the one of several records that covers it, and from none of another schedule', () => {
    const runs = [
      run('10:10', { coalesced: 1, coalescedFrom: at('10:00') }),
      run('10:30', { coalesced: 1, coalescedFrom: at('10:20') }),
      run('10:50', { uid: B, coalesced: 1, coalescedFrom: at('10:40') }),
    ];
    expect(linesOf(always, runs, { horizon: '11:00' })).toEqual([
      '10:00 v1 missed latest by 10:10 *',
      '10:10 v1 fired *',
      '10:20 v1 missed latest by 10:30 *',
      '10:30 v1 fired *',
      '10:40 v1 missed retention',
      '10:50 v1 missed retention',
      '10:50 v1 fired *',
    ]);
  });

  test('from the record of its own version, if it lies among those of the version before', () => {
    const before = run('10:20', { version: 1, coalesced: 2, coalescedFrom: at('10:00') });
    const own = run('10:50', { version: 2, coalesced: 1, coalescedFrom: at('10:00') });
    const spans = [span({ version: 2, since: '00:00' })];
    expect(linesOf(spans, [before, own], half).slice(0, 2)).toEqual([
      '10:00 v2 missed latest by 10:50 *',
      '10:10 v2 missed latest by 10:50 *',
    ]);
    expect(linesOf(spans, [before], { ...half, horizon: '10:20' }).slice(0, 2)).toEqual([
      '10:00 v2 missed retention',
      '10:10 v2 missed retention',
    ]);
  });

  test('is open for an occurrence that is not planned yet, even if it is due, and says where planning fails', () => {
    expect(linesOf(always, [run('10:00')], { ...half, now: '10:15', cursor: '10:10' })).toEqual([
      '10:00 v1 fired *',
      '10:10 v1 upcoming',
      '10:20 v1 upcoming',
    ]);
    const inError = linesOf(always, [run('10:00')], {
      ...half,
      now: '10:15',
      cursor: '10:10',
      inError: true,
    });
    expect(inError.slice(1)).toEqual(['10:10 v1 upcoming error', '10:20 v1 upcoming error']);
    // An edit that leaves the times alone does not plan what cannot be planned.
    const edited = [span({ version: 1, since: '00:00', until: '10:15' }), span({ version: 2, since: '10:15' })];
    const late = linesOf(edited, [run('10:00')], { ...half, cursor: '10:10', inError: true });
    expect(late.slice(1)).toEqual(['10:10 v1 upcoming error', '10:20 v2 upcoming error']);
  });

  test('was older than the retention when no instance planned it, if nothing else explains it', () => {
    expect(linesOf(always, [], { ...half, horizon: '10:20' })).toEqual([
      '10:00 v1 missed retention',
      '10:10 v1 missed retention',
      '10:20 v1 missed unknown',
    ]);
  });

  test('was a pause, from its start to its end, unless it was backfilled', () => {
    const spans = [
      span({ version: 1, since: '00:00', until: '10:10' }),
      span({ version: 2, since: '10:10', until: '10:40', enabled: false }),
      span({ version: 3, since: '10:40' }),
    ];
    const runs = [run('10:00'), run('10:10'), run('10:20', { version: 3 }), run('10:50', { version: 3 })];
    expect(linesOf(spans, runs)).toEqual([
      '10:00 v1 fired *',
      '10:10 v1 fired *',
      '10:20 v2 fired *',
      '10:30 v2 paused',
      '10:40 v2 paused',
      '10:50 v3 fired *',
    ]);
  });

  test('is no pause if a record of the time around covers it, and no pause if it is still to come', () => {
    const paused = [span({ since: '00:00', enabled: false })];
    const record = run('11:00', { coalesced: 9, coalescedFrom: at('09:00') });
    expect(linesOf(paused, [record], half)).toEqual(['10:00 v1 paused', '10:10 v1 paused', '10:20 v1 paused']);
    const toCome = linesOf(paused, [], { ...half, now: '09:00' });
    expect(toCome.map((line) => line.slice(9))).toEqual(['paused', 'paused', 'paused']);
  });

  test('crosses an edit that moves the times: what the old version left is not upcoming under the new', () => {
    const spans = [
      span({ version: 1, since: '00:00', until: '10:20' }),
      span({ version: 2, since: '10:20', timing: { cron: '5,35 * * * *' } }),
    ];
    const runs = [run('10:00'), run('10:20', { coalesced: 1, coalescedFrom: at('10:10') })];
    expect(linesOf(spans, runs, { now: '10:30', cursor: '10:35' })).toEqual([
      '10:00 v1 fired *',
      '10:10 v1 missed latest by 10:20 *',
      '10:20 v1 fired *',
      '10:35 v2 upcoming',
    ]);
  });

  test('nor if jitter delays it beyond an edit that leaves the times as they are', () => {
    const edit = dueOf(JITTER) - 1;
    const before = { ...span({ since: '00:00', timing: JITTER }), until: edit };
    const behind = { ...span({ version: 2, since: '00:00', timing: JITTER }), since: edit };
    const found = accountFor(expectedOf([before, behind], '10:00', '10:01'), [], [], {
      ...planningAt({ now: '12:00', cursor: '10:00' }),
      now: edit,
    });
    expect(found).toMatchObject([{ fireAt: at('10:00'), version: 2, state: 'upcoming' }]);
  });

  test('is separate for each schedule, if an id was created again', () => {
    const spans = [
      span({ uid: B, version: 1, since: '09:00', until: '10:20' }),
      span({ uid: A, version: 1, since: '10:20' }),
    ];
    const runs = [run('10:00', { uid: B }), run('10:10', { uid: B }), run('10:20', { uid: B }), run('10:30')];
    expect(linesOf(spans, runs, { now: '10:35', cursor: '10:40', uid: A })).toEqual([
      '10:00 v1 fired *',
      '10:10 v1 fired *',
      '10:20 v1 fired *',
      '10:30 v1 fired *',
      '10:40 v1 upcoming',
      '10:50 v1 upcoming',
    ]);
    // Deleted: nothing follows, whatever the next schedule of the id does.
    expect(linesOf(spans.slice(0, 1), runs, { uid: A, cursor: '10:40' })).toHaveLength(4);
  });

  test('is listed for a run that no version explains', () => {
    const runs = [run('10:03', { version: 4 }), run('10:00'), run('10:10'), run('10:20')];
    expect(linesOf(always, runs, half)).toEqual([
      '10:00 v1 fired *',
      '10:03 v4 fired *',
      '10:10 v1 fired *',
      '10:20 v1 fired *',
    ]);
  });

  test('with jitter is upcoming until it is due', () => {
    const due = dueOf(JITTER);
    const spans = [span({ since: '00:00', timing: JITTER })];
    const seen = (now: Instant) =>
      accountFor(expectedOf(spans, '10:00', '10:30'), [], [], { ...planningAt({}), now })[0]?.state;
    expect([seen(due - 1), seen(due)]).toEqual(['upcoming', 'missed']);
  });
});
