import { describe, expect, test } from 'vitest';
import { type Cursor, cursorUnder, movesTimes } from '../../../src/core/time/definition-change.ts';
import { type Instant, isoInstant } from '../../../src/core/instant.ts';
import { plannedRunId } from '../../../src/core/runs/run.ts';
import type { Definition } from '../../../src/core/schedules/schedule.ts';
import { type PlannedFire, horizonOf, plannedFire, skippedFires, walkDue } from '../../../src/core/time/plan-due.ts';
import { type VersionSpan, createExpectation } from '../../../src/core/time/expected-occurrences.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import { type PlannedRun, accountFor } from '../../../src/core/time/occurrences.ts';
import { createRandom } from '../../chaos/random.ts';
import { definitionOf } from '../../support/pipeline.ts';
import { casesOf } from '../time-rule/depth.ts';

const UID = '00000000-0000-4000-8000-00000000000a';
const FIRST = '00000000-0000-0000-0000-000000000000';
const START = Date.UTC(2026, 9, 24, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const RETENTION_DAYS = 2;
const SEEDS = casesOf(80);

function randomOf(seed: number) {
  const random = createRandom(seed, 'accounted');
  return {
    below: (bound: number) => Math.floor(random.next() * bound),
    pick: <T>(choices: readonly T[]): T => random.pick(choices),
  };
}

/** What a caller asked to skip: some of all moments. */
const SKIPS = { has: (at: Instant) => Math.floor(at / MINUTE) % 13 === 7 } as ReadonlySet<Instant>;
const ASKED = { reason: null, made: false };
const skips = { get: (at: Instant) => (SKIPS.has(at) ? ASKED : undefined) } as ReadonlyMap<Instant, typeof ASKED>;

type Random = ReturnType<typeof randomOf>;

const KINDS: Partial<Definition>[] = [
  { cron: '*/7 * * * *' },
  { cron: '0 * * * *' },
  { cron: '30 2 * * *', timezone: 'Europe/Berlin' },
  { cron: '0,20 0-3 * * *', timezone: 'Europe/Berlin' },
  { cron: null, everySeconds: 1000 },
  { cron: null, everySeconds: 45_000 },
];

function someDefinition({ below, pick }: Random): Definition {
  return definitionOf({
    url: '',
    ...pick(KINDS),
    jitterSeconds: pick([0, 0, 90, 3600, 86_400]),
    catchUp: pick(['skip', 'latest', 'all']),
    catchUpLimit: pick([0, 1, 3, 100]),
    graceSeconds: pick([0, 60, 1800]),
    enabled: below(4) > 0,
    startAt: below(8) === 0 ? START + below(20) * HOUR : null,
    endAt: below(8) === 0 ? START + (20 + below(100)) * HOUR : null,
    labels: { round: String(below(3)) },
  });
}

/** A schedule whose planner is away for hours at times, and whose owner edits it, as the planner and the edits of firelock do. */
function simulate(seed: number) {
  const random = randomOf(seed);
  const identity = { id: `job-${seed}`, createdAt: START };
  const runs = new Map<Instant, PlannedRun>();
  const versions: { at: Instant; definition: Definition }[] = [];
  let definition = someDefinition(random);
  let cursor = cursorUnder(definition, null, identity, START);
  let plannedThrough: Instant | null = null;
  versions.push({ at: START, definition });

  const record = (fires: readonly PlannedFire[]) => {
    for (const { scheduledFor, skipped, coalesced, coalescedFrom } of fires) {
      plannedThrough = Math.max(plannedThrough ?? scheduledFor, scheduledFor);
      if (runs.has(scheduledFor)) continue;
      const base = { uid: UID, id: plannedRunId(UID, scheduledFor), version: versions.length };
      const fate = { status: skipped === null ? 'succeeded' : 'skipped', reason: skipped } as const;
      runs.set(scheduledFor, { ...base, ...fate, scheduledFor, coalesced, coalescedFrom });
    }
  };
  const plan = (now: Instant): Cursor => {
    if (!definition.enabled || cursor.nextOccurrenceAt === null) return cursor;
    const period = { now, horizon: horizonOf(now, RETENTION_DAYS), plannedThrough, skips };
    const walk = walkDue(fireTimes(definition, identity), definition, cursor.nextOccurrenceAt, period);
    for (;;) {
      const step = walk.step(() => true);
      if (!step) continue;
      record(step.fires);
      if (!step.isPartial) return step;
    }
  };
  const edit = (now: Instant) => {
    const before = definition;
    const after = random.pick([
      { ...before, labels: { edited: String(now) } },
      { ...before, enabled: !before.enabled },
      { ...before, enabled: !before.enabled },
      someDefinition(random),
    ]);
    const planned = plan(now);
    const { nextOccurrenceAt: at, nextFireAt: dueAt } = planned;
    const moved = before.enabled && after.enabled && movesTimes(before, after);
    if (moved && at !== null && dueAt !== null && at <= now) {
      const due = { at, dueAt };
      record(SKIPS.has(at) ? skippedFires(due, ASKED) : [plannedFire(due, 'schedule')]);
    }
    cursor = cursorUnder(after, { definition: before, nextOccurrenceAt: at }, identity, now);
    definition = after;
    versions.push({ at: now, definition });
  };

  let now = START;
  for (let round = 0; round < 40; round += 1) {
    now += random.pick([1000, MINUTE, 7 * MINUTE, HOUR, 5 * HOUR, 20 * HOUR, 70 * HOUR]) + random.below(5) * 250;
    if (random.below(4) === 0) edit(now);
    else cursor = plan(now);
  }
  return { identity, versions, runs: [...runs.values()], cursor, now };
}

const seen = new Set<string>();

describe('whatever is edited, and however long no instance plans', () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => seed))('every occurrence is accounted for (%i)', (seed) => {
    const { identity, versions, runs, cursor, now } = simulate(seed);
    const expectation = createExpectation({
      after: { fireAt: START - 24 * HOUR, uid: FIRST },
      to: now + HOUR,
      max: 100_000,
    });
    for (const [index, { at, definition }] of versions.entries()) {
      const span: VersionSpan = {
        uid: UID,
        version: index + 1,
        identity,
        enabled: definition.enabled,
        timing: definition,
        since: at,
        until: versions[index + 1]?.at ?? null,
      };
      Array.from(expectation.add(span));
    }
    const inPeriod = runs.filter(({ scheduledFor }) => scheduledFor < now + HOUR);
    const { nextOccurrenceAt } = cursor;
    const current = { uid: UID, nextOccurrenceAt, inError: false, skips: SKIPS, goesOnAfter: now };
    const planning = { now, horizon: horizonOf(now, RETENTION_DAYS), current };
    const occurrences = accountFor(expectation.list(), inPeriod, [], planning);

    expect(occurrences.filter(({ reason }) => reason === 'unknown').map(({ fireAt }) => isoInstant(fireAt))).toEqual(
      [],
    );
    for (const { state, reason } of occurrences) seen.add(reason === null ? state : `${state} ${reason}`);
    const moments = occurrences.map(({ fireAt }) => fireAt);
    expect(new Set(moments).size).toBe(moments.length);
    expect(moments).toEqual([...moments].sort((a, b) => a - b));
    // Every run is told, and everything that ran is told as fired or skipped by policy.
    const own = new Map(runs.map((run) => [run.scheduledFor, run.id]));
    expect([...own.keys()].filter((at) => !moments.includes(at))).toEqual([]);
    for (const { fireAt, state, reason, runId } of occurrences) {
      const run = own.get(fireAt);
      if (SKIPS.has(fireAt))
        expect(['skipped request', 'paused', 'missed retention']).toContain(`${state} ${reason ?? ''}`.trim());
      else if (run !== undefined) expect([state, runId]).toEqual([state === 'missed' ? 'missed' : 'fired', run]);
      else expect(['missed', 'paused', 'upcoming']).toContain(state);
      if (state === 'missed' && reason !== 'retention') expect(runId).not.toBeNull();
      if (state === 'upcoming') expect(fireAt).toBeGreaterThanOrEqual(cursor.nextOccurrenceAt ?? Infinity);
    }
    // What is told as missed is counted by its record. Jitter can make two versions explain what is told once.
    const jittered = versions.some(({ definition }) => definition.jitterSeconds > 0);
    const missed = occurrences.filter(({ fireAt, state }) => state === 'missed' && !own.has(fireAt));
    for (const { id, coalesced } of runs) {
      const count = missed.filter(({ runId }) => runId === id).length;
      expect(count).toBeLessThanOrEqual(coalesced);
      if (!jittered) expect(count).toBe(coalesced);
    }
  });

  test('and every kind of event occurred', () => {
    expect([...seen].sort()).toEqual(EVERYTHING);
  });
});

const EVERYTHING = [
  'fired',
  'missed latest',
  'missed limit',
  'missed retention',
  'missed skip',
  'paused',
  'skipped request',
  'upcoming',
];
