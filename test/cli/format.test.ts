import { expect, test } from 'vitest';
import { ATTACK } from '../support/runner/attack.ts';
import { cutToWidth, displayWidth, paintFor, plain, printable } from '../../src/cli/terminal/shown-text.ts';
import { type Column, tableLines } from '../../src/cli/terminal/table.ts';
import { durationText, timeCell, timeText, zoneNote } from '../../src/cli/terminal/time-text.ts';
import { EXIT } from '../../src/cli/exit-codes.ts';
import { readerZone } from '../../src/cli/surroundings.ts';
import { firelock } from './cli.ts';

test('the width of a text is the one on a terminal: wide letters take two columns, marks none', () => {
  for (const [text, width] of [
    ['', 0],
    ['plain', 5],
    ['Zürich', 6],
    ['Zu\u0308rich', 6],
    ['東京', 4],
    ['ｶﾅ', 2],
    ['カナ', 4],
    ['한국', 4],
    ['ｗｉｄｅ', 8],
    ['🚀', 2],
    ['👩‍👩‍👧', 2],
    ['❤️', 2],
    ['Привет', 6],
  ] as const) {
    expect(displayWidth(text), text).toBe(width);
  }
  expect(cutToWidth('東京都', 6)).toBe('東京都');
  expect(cutToWidth('東京都', 5)).toBe('東京…');
  expect(cutToWidth('東京都', 4)).toBe('東…');
  expect(cutToWidth('abc', 0)).toBe('');
});

test('text by others cannot command the terminal, nor leave its line', () => {
  expect(printable('a\u001b[31mb\u0007')).toBe('a\\u001b[31mb\\u0007');
  expect(printable('one\r\n  two\u2028three')).toBe('one two three');
  expect(printable('abc\u202edef\u009b')).toBe('abc\\u202edef\\u009b');
  expect(printable('👩‍👩‍👧 é')).toBe('👩‍👩‍👧 é');
  expect(printable('a \t b\t\n  c')).toBe('a   b c');
});

test('a text of blanks takes as long as any other of its length', { tags: [ATTACK] }, () => {
  const blanks = ' '.repeat(2 ** 20);
  expect(printable(`a${blanks}b`)).toBe(`a${blanks}b`);
});

interface Row {
  id: string;
  note: string | null;
  count: number;
}

const COLUMNS: Column<Row>[] = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'NOTE', cell: ({ note }) => note, shrinks: true },
  { title: 'COUNT', cell: ({ count }) => count, align: 'right', mayGo: true },
  { title: 'MORE', cell: () => 'more', isExtra: true },
];
const ROWS: Row[] = [
  { id: 'first', note: '東京 is far away from here', count: 7 },
  { id: 'second', note: null, count: 123 },
];

test('a table fits the terminal: one column shrinks, another is left out, and ids stay whole', () => {
  const lines = (columns: number | null) => tableLines(COLUMNS, ROWS, { columns, paint: plain });
  expect(lines(null)).toEqual([
    'ID      NOTE                        COUNT  MORE',
    'first   東京 is far away from here      7  more',
    'second  -                             123  more',
  ]);
  expect(lines(28)).toEqual([
    'ID      NOTE           COUNT',
    'first   東京 is far …      7',
    'second  -                123',
  ]);
  expect(lines(20)).toEqual(['ID      NOTE', 'first   東京 is far…', 'second  -']);
  expect(lines(5)).toEqual(['ID      NOTE', 'first   東京 is…', 'second  -']);
  for (const line of lines(28)) expect(displayWidth(line)).toBeLessThanOrEqual(28);
  expect(tableLines(COLUMNS, [], { columns: 80, paint: plain })).toEqual(['ID  NOTE  COUNT']);
});

test('colours are for terminals, and NO_COLOR turns them off', () => {
  expect(paintFor(true, {})('red', 'x')).toBe('\u001b[31mx\u001b[39m');
  expect(paintFor(true, { NO_COLOR: '' })('red', 'x')).toBe('\u001b[31mx\u001b[39m');
  expect(paintFor(true, { NO_COLOR: '1' })('red', 'x')).toBe('x');
  expect(paintFor(true, { TERM: 'dumb' })('red', 'x')).toBe('x');
  expect(paintFor(false, {})('red', 'x')).toBe('x');
});

test('a time is shown in UTC and in the reader’s zone', () => {
  const at = '2030-06-30T22:30:05.000Z';
  expect(timeText(at, 'UTC')).toBe('2030-06-30 22:30:05Z');
  expect(timeText(at, 'Europe/Berlin')).toBe('2030-06-30 22:30:05Z = 07-01 00:30:05+02:00');
  expect(timeText(at, 'America/New_York')).toBe('2030-06-30 22:30:05Z = 18:30:05-04:00');
  expect(timeText(at, 'Asia/Kathmandu')).toBe('2030-06-30 22:30:05Z = 07-01 04:15:05+05:45');
  // London has the time of UTC in winter only.
  expect(timeText('2030-01-01T00:00:00.000Z', 'Europe/London')).toBe('2030-01-01 00:00:00Z');
  expect(timeText('2030-01-01T00:00:00.007Z', 'UTC')).toBe('2030-01-01 00:00:00.007Z');
  expect([timeText(null, 'UTC'), timeText('soon', 'UTC')]).toEqual(['', 'soon']);

  const cell = (now: string, hasLocal: boolean, zone = 'Europe/Berlin') =>
    timeCell('2030-06-30T22:30:05.999Z', { zone, now: Date.parse(now), hasLocal });
  expect(cell('2030-01-01T00:00:00Z', true)).toBe('06-30 22:30:05Z = 07-01 00:30:05');
  expect(cell('2029-12-31T23:59:59Z', true)).toBe('2030-06-30 22:30:05Z = 07-01 00:30:05');
  expect(cell('2030-01-01T00:00:00Z', false)).toBe('06-30 22:30:05Z');
  expect(cell('2030-01-01T00:00:00Z', true, 'UTC')).toBe('06-30 22:30:05Z');
  expect([zoneNote('UTC', true), zoneNote('Asia/Tokyo', true), zoneNote('Asia/Tokyo', false)]).toEqual([
    'times are UTC',
    'times are UTC = Asia/Tokyo',
    'times are UTC; --wide shows those of Asia/Tokyo as well',
  ]);
});

test('a duration is shown as precisely as it matters', () => {
  expect([0, 35, 999, 1000, 2540, 12_345, 90_000, 5_400_000, 200_000_000, -1500, null].map(durationText)).toEqual([
    '0 ms',
    '35 ms',
    '999 ms',
    '1 s',
    '2.5 s',
    '12 s',
    '1.5 min',
    '1.5 h',
    '2.3 d',
    '-1.5 s',
    '',
  ]);
});

test.each([
  [undefined, 'Europe/Berlin', 'Europe/Berlin'],
  ['Asia/Tokyo', 'Asia/Tokyo', 'Asia/Tokyo'],
  [':Asia/Tokyo', 'Asia/Tokyo', 'Asia/Tokyo'],
  ['EST5EDT', 'America/New_York', 'EST5EDT'],
  ['', 'Etc/Unknown', null],
  ['UTC0', undefined, null],
  [':/etc/localtime', undefined, null],
  ['CET-1CEST,M3.5.0,M10.5.0/3', 'UTC', null],
  ['<+03>-3', '+03:00', null],
  ['GMT+5', '+05:00', null],
  ['Nowhere/City', undefined, null],
  [undefined, undefined, null],
])('TZ=%j on a machine of %j: %j', (tz, ofMachine, zone) => {
  expect(readerZone(tz, ofMachine)).toBe(zone);
});

test('without a zone, an import of a crontab asks for one, and one of CronJobs needs none', async () => {
  const around = { input: '30 2 * * * root /bin/backup\n', zone: null };
  const { code, out, err } = await firelock('import-crontab - --system', around);
  expect([code, out, err]).toEqual([
    EXIT.usage,
    '',
    expect.stringContaining('--timezone: TZ names no zone, so say which one the times are in'),
  ]);
  const given = await firelock('import-crontab - --system --timezone Asia/Tokyo', around);
  expect([given.code, given.out]).toEqual([0, expect.stringContaining('timezone: Asia/Tokyo')]);
});
