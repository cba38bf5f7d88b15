import { describe, expect, it } from 'vitest';
import type { Timing } from '../../../src/core/timing/timing.ts';
import { fireTimes } from '../../../src/core/time/fire-times.ts';
import {
  type CursorState,
  type ZoneDataSeen,
  cursorByZoneData,
  judgeZoneData,
} from '../../../src/core/time/cursors.ts';
import { timingOf } from './support.ts';

const NOW = Date.parse('2026-06-10T12:00:00Z');

describe('whether the cursors must be checked', () => {
  const ago = (seconds: number) => NOW - seconds * 1000;
  const other = (version: string, seconds: number | null) => ({
    version,
    alive: seconds === null,
    lastAliveAt: seconds === null ? NOW + 10_000 : ago(seconds),
  });

  it.each<[string, recorded: string | null, ZoneDataSeen['others'], string]>([
    ['never recorded', null, [], 'look'],
    ['recorded with these', '2026a', [], 'settled'],
    ['recorded with older ones', '2025c', [], 'look'],
    ['recorded with newer ones', '2026b', [], 'look'],
    ['newer ones live', '2025c', [other('2026b', null)], 'wait for ever'],
    ['newer ones live and are recorded', '2026b', [other('2026b', null)], 'wait for ever'],
    ['newer and older ones live', null, [other('2025c', null), other('2026b', null)], 'wait for ever'],
    ['older ones live', '2026a', [other('2025c', null)], 'look'],
    ['older ones went before', '2026a', [other('2025c', 605)], 'settled'],
    ['older ones went too short before', '2026a', [other('2025c', 604)], 'look'],
    ['older ones went since', '2026a', [other('2025c', 1)], 'look'],
    ['newer ones went a minute ago', '2026b', [other('2026b', 60)], 'wait 240'],
    ['newer ones went five minutes ago', '2026b', [other('2026b', 300)], 'look'],
    ['newer ones were there, unrecorded', '2026a', [other('2026b', 60)], 'wait 240'],
    ['the clock of the database went back', '2026b', [other('2026b', -86_400)], 'wait 300'],
    ['a version after z lives', null, [other('2026za', null)], 'wait for ever'],
    ['what is no version lives', '2026a', [other('unknown', null)], 'look'],
  ])('%s', (_, version, others, expected) => {
    const recorded = version === null ? null : { version, lookedThroughAt: ago(600) };
    const verdict = judgeZoneData('2026a', { now: NOW, recorded, others });
    const ms = verdict.kind === 'wait' ? verdict.ms : 0;
    const text = ms === 0 ? verdict.kind : `wait ${ms === Infinity ? 'for ever' : ms / 1000}`;
    expect(text).toBe(expected);
  });

  it('a text that is no version is older than any', () => {
    expect(judgeZoneData('unknown', { now: NOW, recorded: null, others: [other('1996a', null)] }).kind).toBe('wait');
    expect(judgeZoneData('unknown', { now: NOW, recorded: null, others: [] }).kind).toBe('look');
  });
});

describe('where planning stands by other zone data', () => {
  const at = (time: string) => Date.parse(`2026-06-${time}:00Z`);
  const cursorOf = (
    cron: string,
    state: Partial<CursorState> & Pick<CursorState, 'nextOccurrenceAt'>,
    { now = NOW, ...timing }: Partial<Timing> & { now?: number } = {},
  ) => {
    // The clocks of Nairobi stand still at three hours from UTC.
    const whole = timingOf({ cron, timezone: 'Africa/Nairobi', ...timing });
    const times = fireTimes(whole, { id: 'some', createdAt: 0 });
    const cursor = cursorByZoneData(times, { lastFireAt: null, updatedAt: 0, ...state }, now);
    return cursor === null ? null : new Date(cursor).toISOString().slice(0, 16).replace('2026-06-', '');
  };

  it.each([
    ['where it was', '11T09:00', '11T09:00'],
    ['an hour earlier', '11T10:00', '11T09:00'],
    ['an hour later', '11T08:00', '11T09:00'],
    ['on the other side of the date line, before', '12T09:00', '11T09:00'],
  ])('%s', (_, cursor, moved) => {
    expect(cursorOf('0 12 * * *', { nextOccurrenceAt: at(cursor) })).toBe(moved);
  });

  it('at the past moment that it stood for, whichever is nearest', () => {
    const today = { nextOccurrenceAt: at('10T12:30') };
    expect(cursorOf('30 14 * * *', today)).toBe('10T11:30');
    expect(cursorOf('30 14 1-15 6 *', today)).toBe('10T11:30');
    expect(cursorOf('30 14,16 * * *', today)).toBe('10T11:30');
    expect(cursorOf('30 14,15 * * *', today)).toBe('10T12:30');
    expect(cursorOf('30 14 * * *', { nextOccurrenceAt: at('10T23:29') })).toBe('10T11:30');
    expect(cursorOf('30 14 * * *', { nextOccurrenceAt: at('10T23:31') })).toBe('11T11:30');
    // Next year is no nearer, but yesterday is too far away to be meant.
    expect(cursorOf('30 14 9 6 *', { nextOccurrenceAt: at('10T12:30') })).toBe('2027-06-09T11:30');
  });

  it('not at a past one that another fire stood for, or that was due before the newest version', () => {
    const nextOccurrenceAt = at('10T12:30');
    expect(cursorOf('30 14 * * *', { nextOccurrenceAt, lastFireAt: at('10T10:30') })).toBe('10T11:30');
    expect(cursorOf('30 14 * * *', { nextOccurrenceAt, lastFireAt: at('10T10:31') })).toBe('11T11:30');
    expect(cursorOf('30 14 * * *', { nextOccurrenceAt, updatedAt: at('10T11:29') })).toBe('10T11:30');
    expect(cursorOf('30 14 * * *', { nextOccurrenceAt, updatedAt: at('10T11:30') })).toBe('11T11:30');
  });

  it('after what has fired, whatever the clock says now', () => {
    expect(cursorOf('0 * * * *', { nextOccurrenceAt: at('10T15:00'), lastFireAt: at('10T14:00') })).toBe('10T15:00');
  });

  it('nowhere after the end, and somewhere again before it', () => {
    const fired = { nextOccurrenceAt: at('10T12:30'), lastFireAt: at('09T12:30') };
    expect(cursorOf('0 16 * * *', fired, { endAt: at('10T12:45') })).toBeNull();
    expect(cursorOf('0 16 * * *', { nextOccurrenceAt: null }, { endAt: at('10T13:01') })).toBe('10T13:00');
    expect(cursorOf('0 16 * * *', { nextOccurrenceAt: null }, { endAt: at('10T13:00') })).toBeNull();
    expect(cursorOf('0 14 * * *', { nextOccurrenceAt: at('10T12:30') }, { endAt: at('10T12:45') })).toBe('10T11:00');
  });
});
