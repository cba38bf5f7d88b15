import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { holidaysIn, yearsIn } from '../../src/cli/settings/ics/ics-calendar.ts';
import { sharedApi } from '../api/api.ts';
import { ATTACK } from '../support/runner/attack.ts';
import { firelock } from './cli.ts';

const api = sharedApi();

const set = (input: string, ...args: string[]) =>
  firelock(['calendar set off --ics -', ...args], { url: api.url, input });

/** A file of events, each of these lines. */
const fileOf = (...events: string[][]) =>
  ['BEGIN:VCALENDAR', ...events.flatMap((lines) => ['BEGIN:VEVENT', ...lines, 'END:VEVENT']), 'END:VCALENDAR'].join(
    '\n',
  );
const UNSUPPORTED = 'not supported: delete the event from the file, and name its days by --add';
const around = { now: () => Date.UTC(2030, 0, 1), zone: 'UTC' };
const read = (text: string, years?: string) => holidaysIn(text, { file: 'h.ics', years: yearsIn(years, around) });
const datesOf = (lines: string[], years?: string) => read(fileOf(lines), years).dates;
const refusal = (lines: string[], years?: string): string => {
  try {
    return `taken: ${datesOf(lines, years).join(' ')}`;
  } catch (error) {
    return (error as Error).message;
  }
};

test('holidays as Google publishes them are days off, transparent as they are; cancelled ones and other years are not', async () => {
  const made = await set(GOOGLE);
  expect(made.json()).toMatchObject({ dates: ['2030-12-25', '2030-12-31/2031-01-02'] });
  expect([made.code, made.err.split('\n')]).toEqual([
    0,
    [
      '-: 1 event left out that is cancelled: “Spring Day” (line 31)',
      '-: 1 event of other years left out',
      '-: taken: Winter Day, Turn of the year',
      '-: 4 days from 2 events, 2030 to 2032',
      'created calendar off, version 1',
      '',
    ],
  ]);
  const { dates } = read(GOOGLE, '2031');
  expect(dates).toEqual(['2031-01-01/2031-01-02']);
});

test('a file replaces all dates, but for those that --date and --add name, and without those that --remove names', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-ics-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'holidays.ics');
  await writeFile(file, GOOGLE);
  await set(GOOGLE, '--date', '2030-01-01');
  const args = ['calendar', 'set', 'off', '--ics', file, '--years', '2030', '--remove', '2030-12-25'];
  const made = await firelock([...args, '--add', '2030-06-01'], { url: api.url });
  expect(made.json()).toMatchObject({ dates: ['2030-12-31', '2030-06-01'] });
  const again = await firelock([...args.slice(0, -2), '--remove', '2030-07-04'], { url: api.url });
  expect([again.code, again.err]).toEqual([1, expect.stringContaining('does not list 2030-07-04')]);
});

test('rules of Apple’s Calendar are followed through the years, with their exceptions and additional days', () => {
  const { dates, notes } = read(APPLE);
  expect(dates).toEqual([...['2030-01-01', '2030-07-02', '2030-07-07', '2030-11-28'], '2032-11-25']);
  expect(notes.at(-1)).toBe('h.ics: 5 days from 3 events, 2030 to 2032');
  expect(notes[0]).toBe('h.ics: 1 event left out that is cancelled: “an event without a title” (line 43)');
});

test('days of Outlook from midnight to midnight are taken; what has a time of day, or is midnight in UTC only, is named', () => {
  const { dates, notes } = read(OUTLOOK);
  expect(dates).toEqual(['2030-05-01', '2030-10-03', '2030-11-11', '2031-05-01']);
  expect(notes).toEqual([
    'h.ics: 2 events left out that have a time of day: “Jour fixe” (line 24), “Abroad” (line 31)',
    'h.ics: taken: Tag der Arbeit, Tag der Einheit, No VALUE=DATE',
    'h.ics: 4 days from 3 events, 2030 to 2032',
  ]);
});

test('rules that holidays use: every second year, the last Monday, the 29th of February, a number of times', () => {
  const start = (date: string, rule: string) => [`DTSTART;VALUE=DATE:${date}`, `RRULE:${rule}`];
  expect(datesOf(start('20240229', 'FREQ=YEARLY'), '2024..2032')).toEqual([
    ...['2024-02-29', '2028-02-29'],
    '2032-02-29',
  ]);
  expect(datesOf(start('20200525', 'FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO'), '2030')).toEqual(['2030-05-27']);
  expect(datesOf(start('20291201', 'FREQ=YEARLY;INTERVAL=2'), '2029..2032')).toEqual(['2029-12-01', '2031-12-01']);
  expect(datesOf(start('20301220', 'FREQ=YEARLY;COUNT=2'))).toEqual(['2030-12-20', '2031-12-20']);
  expect(datesOf([...start('20301230', 'FREQ=YEARLY'), 'DURATION:P1W'], '2031')).toEqual([
    '2031-01-01/2031-01-05',
    '2031-12-30/2031-12-31',
  ]);
  expect(datesOf(start('20300228', 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1'))).toEqual([
    ...['2030-02-28', '2031-02-28'],
    '2032-02-29',
  ]);
  // Two events of one day, and two that share a part of their days.
  const twice = fileOf(
    ['DTSTART;VALUE=DATE:20300102', 'DTEND;VALUE=DATE:20300105'],
    ['DTSTART;VALUE=DATE:20300104', 'DTEND;VALUE=DATE:20300106'],
    ['DTSTART;VALUE=DATE:20300106'],
    ['DTSTART;VALUE=DATE:20300106'],
  );
  expect(read(twice).dates).toEqual(['2030-01-02/2030-01-05', '2030-01-06']);
});

test('what cannot be read is named by its line, and nothing is changed', async () => {
  const day = 'DTSTART;VALUE=DATE:20300101';
  expect(refusal([day, 'no colon here'])).toBe('h.ics:4: cannot be read: no colon here');
  expect(refusal(['DTSTART;VALUE=DATE:20300231', 'SUMMARY:Odd'])).toBe(
    'h.ics:2: “Odd”: DTSTART is no date: 2030-02-31',
  );
  expect(refusal(['SUMMARY:Never'])).toBe('h.ics:2: “Never”: it has no DTSTART');
  for (const [line, why] of [
    ['RRULE:FREQ=SECONDLY', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:X', 'its RRULE has the part “X”, which is not known'],
    ['RRULE:FREQ=YEARLY;COUNT=-1', 'its RRULE has COUNT=-1, which is no number from 1 on'],
    ['RRULE:FREQ=YEARLY; INTERVAL=2', 'its RRULE has the part “ INTERVAL=2”, which is not known'],
    ['RRULE:FREQ=YEARLY;BYDAI=MO', 'its RRULE has the part “BYDAI=MO”, which is not known'],
    ['RRULE:FREQ=YEARLY;UNTIL=2031-02-03', 'its RRULE has UNTIL=2031-02-03, which is no date'],
    ['RRULE:FREQ=YEARLY;COUNT=2;UNTIL=20310203', 'its RRULE has both COUNT and UNTIL'],
    ['RRULE:FREQ=YEARLY;BYWEEKNO=20', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=YEARLY;BYDAY=20MO', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=YEARLY;BYMONTH=1;BYDAY=MO;BYSETPOS=1', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=MONTHLY;BYMONTHDAY=1', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=WEEKLY', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=YEARLY;UNTIL=20310231', 'its RRULE has an UNTIL that is no date'],
    ['RRULE:FREQ=DAILY', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=YEARLY;INTERVAL=999999999', `its RRULE is ${UNSUPPORTED}`],
    ['RRULE:FREQ=YEARLY;RSCALE=CHINESE', `EXRULE and RSCALE are ${UNSUPPORTED}`],
    ['EXRULE:FREQ=YEARLY', `EXRULE and RSCALE are ${UNSUPPORTED}`],
    ['RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20300101', 'RECURRENCE-ID with a RANGE is not supported'],
    ['DURATION:PT90M', 'DURATION:PT90M is no number of days'],
    ['RDATE;VALUE=PERIOD:20300101T000000Z/P1D', 'RDATE has a time of day'],
  ] as const)
    expect(refusal([day, line]).replace('h.ics:2: “an event without a title”: ', '')).toEqual(why);
  expect(refusal([day, 'RRULE:FREQ=NEVER'])).toContain('its RRULE has no FREQ that is known: NEVER');
  for (const [text, why] of [
    ['<!doctype html>', '-: not an iCalendar file: it has no line BEGIN:VCALENDAR'],
    ['BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x', '-:2: the event has no end: the file is cut off'],
    ['BEGIN:VCALENDAR\nEND:VEVENT', '-:2: END:VEVENT is out of place'],
    ['BEGIN:VCALENDAR\nEND:VCALENDAR', '- has no whole days of these years; nothing is changed'],
  ] as const) {
    const refused = await set(text);
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toContain(why);
  }
  for (const years of ['next', '2032..2030', '203'])
    expect(await set(GOOGLE, '--years', years)).toMatchObject({ code: 64, out: '' });
  expect(await firelock('calendar set off --years 2030', { url: api.url })).toMatchObject({
    code: 64,
  });
});

test('observances, which Google marks in descriptions only, are left out and named, and titles choose among the rest', () => {
  const day = (date: string, title: string, description: string) => [
    ...[`DTSTART;VALUE=DATE:${date}`, `SUMMARY:${title}`, `DESCRIPTION:${description}`],
  ];
  const text = fileOf(
    day('20300101', 'New Year', 'Public holiday'),
    day('20300214', 'Day of Hearts', 'Observance\\nTo hide such days\\, see the settings'),
    day('20300301', 'Tag der Katze', 'Gedenktag\\nAusblenden: Google Kalender-Einstellungen'),
    day('20300401', 'Spring Day', 'Join by Google Meet: https://meet.google.com/x'),
    day('20300501', 'Labour Day', 'Public holiday in some places'),
  );
  const { dates, notes } = read(text, '2030');
  expect(dates).toEqual(['2030-01-01', '2030-04-01', '2030-05-01']);
  expect(notes).toEqual([
    'h.ics: 2 events left out that are observances by their descriptions: “Day of Hearts” (line 7), “Tag der Katze” (line 12)',
    'h.ics: taken: New Year, Spring Day, Labour Day',
    'h.ics: 3 days from 3 events, 2030 to 2030',
  ]);
  const years = yearsIn('2030', around);
  const chosen = (only?: string[], without?: string[]) => holidaysIn(text, { file: 'h.ics', years, only, without });
  expect(chosen(['katze', 'spring']).dates).toEqual(['2030-03-01', '2030-04-01']);
  expect(chosen(undefined, ['labour'])).toMatchObject({
    dates: ['2030-01-01', '2030-04-01'],
    notes: expect.arrayContaining([
      'h.ics: 1 event left out that --only and --without leave out: “Labour Day” (line 22)',
    ]) as unknown,
  });
});

test('properties without a value are absent, the newest version of an event counts, and midnights of one zone make a day', () => {
  const day = 'DTSTART;VALUE=DATE:20300101';
  expect(datesOf([day, 'RRULE:', 'EXDATE;VALUE=DATE:', 'DTEND:', 'DURATION:'])).toEqual(['2030-01-01']);
  const versions = read(
    fileOf(
      ['UID:a', 'SEQUENCE:2', 'DTSTART;VALUE=DATE:20300103', 'SUMMARY:Third'],
      ['UID:a', 'SEQUENCE:10', 'DTSTART;VALUE=DATE:20300104', 'SUMMARY:Fourth'],
      ['UID:a', 'DTSTART;VALUE=DATE:20300102', 'SUMMARY:Second'],
      ['UID:b', 'DTSTART;VALUE=DATE:20300201', 'SUMMARY:Was a day'],
      ['UID:b', 'SEQUENCE:1', 'DTSTART:20300201T090000', 'SUMMARY:Is an hour'],
    ),
    '2030',
  );
  expect(versions.dates).toEqual(['2030-01-04']);
  expect(versions.notes).toContain('h.ics: 3 events left out for a newer one with the same UID');
  const [berlin, tokyo] = [';TZID=Europe/Berlin', ';TZID=Asia/Tokyo'];
  const midnights = (from: string, to: string) => [`DTSTART${from}:20300501T000000`, `DTEND${to}:20300503T000000`];
  expect(datesOf(midnights(berlin, berlin))).toEqual(['2030-05-01/2030-05-02']);
  expect(datesOf(midnights('', ''))).toEqual(['2030-05-01/2030-05-02']);
  expect(datesOf(midnights(berlin, tokyo))).toEqual([]);
  expect(datesOf(['DTSTART:20300501T000000Z', 'DTEND:20300502T000000Z'])).toEqual([]);
});

test('an appointment refuses no file, whatever is in it', () => {
  const odd = ['RRULE:FREQ=NEVER', 'no colon', 'RECURRENCE-ID;RANGE=THISANDFUTURE:20300101T090000', 'DTEND:soon'];
  const { dates, notes } = read(
    fileOf(['DTSTART:20300101T093000Z', 'SUMMARY:Call', ...odd], ['DTSTART;VALUE=DATE:20300102', 'SUMMARY:Day']),
    '2030',
  );
  expect(dates).toEqual(['2030-01-02']);
  expect(notes[0]).toBe('h.ics: 1 event left out that has a time of day: “Call” (line 2)');
});

describe('a hostile file', { tags: [ATTACK] }, () => {
  const from = (date: string, rule: string) => [`DTSTART;VALUE=DATE:${date}`, `RRULE:${rule}`, 'SUMMARY:Bad'];

  test('cannot keep the command busy by rules that repeat very often, or never find a day', () => {
    expect(refusal(from('00010101', 'FREQ=YEARLY'))).toContain('DTSTART is no date: 0001-01-01');
    const months = 'BYMONTH=2,4,6,9,11;BYMONTHDAY=31';
    const none = Array.from({ length: 400 }, () => from('16010101', `FREQ=YEARLY;${months}`));
    expect(() => read(fileOf(...none))).toThrow('repeats too often');
    expect(read(fileOf(...none.slice(0, 15))).dates).toEqual([]);
    const never = 'FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30';
    expect(refusal(from('20300401', never))).toMatch(/^taken: 2030-04-01$/);
  });

  test('cannot fill the memory by its length, or by a day that has no end', () => {
    expect(() => read('x'.repeat(5_000_000))).toThrow('longer than');
    expect(datesOf(['DTSTART;VALUE=DATE:16010101', 'DTEND;VALUE=DATE:99991231'])).toEqual(['2030-01-01/2032-12-31']);
    const lines = Array.from({ length: 50_000 }, (_, index) => `X-${index};A="${index}":${index}`);
    expect(datesOf(['DTSTART;VALUE=DATE:20300101', ...lines])).toEqual(['2030-01-01']);
    expect(datesOf(['DTSTART;VALUE=DATE:20300101', 'DESCRIPTION:x', ...lines.map(() => '  x')])).toEqual([
      '2030-01-01',
    ]);
  });

  test('cannot keep the command busy by one line of a million parameters', () => {
    const parameters = ';A=1'.repeat(1_000_000);
    expect(datesOf(['DTSTART;VALUE=DATE:20300101', `X-LONG${parameters}:x`])).toEqual(['2030-01-01']);
    expect(refusal([`DTSTART${parameters}:20300101`])).toMatch(/^h.ics:3: longer than 65536 characters: DTSTA/);
  });

  test('cannot write into the terminal by its titles', async () => {
    const titled = fileOf(['DTSTART:20300101T090000Z', 'SUMMARY:a\u001b[2Jb'], ['DTSTART;VALUE=DATE:20300101']);
    expect((await set(titled)).err).toContain('“a\\u001b[2Jb”');
  });
});

/** As Google Calendar publishes holidays: folded, all of them transparent, and lines that end with CRLF. */
const GOOGLE = `BEGIN:VCALENDAR
PRODID:-//Google Inc//Google Calendar 70.9054//EN
VERSION:2.0
CALSCALE:GREGORIAN
METHOD:PUBLISH
X-WR-CALNAME:Holidays in Nowhere
X-WR-TIMEZONE:UTC
BEGIN:VEVENT
DTSTART;VALUE=DATE:20301225
DTEND;VALUE=DATE:20301226
DTSTAMP:20260101T080000Z
UID:20301225_a1@google.com
CLASS:PUBLIC
DESCRIPTION:Public holiday: the offices\\, the shops and the post are closed\\n
  on this day\\; see the notice
SEQUENCE:0
STATUS:CONFIRMED
SUMMARY:Winter Day
TRANSP:TRANSPARENT
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20301231
DTEND;VALUE=DATE:20310103
DTSTAMP:20260101T080000Z
UID:20301231_a2@google.com
STATUS:CONFIRMED
SUMMARY:Turn of
  the year
TRANSP:TRANSPARENT
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20310501
DTEND;VALUE=DATE:20310502
UID:20310501_a3@google.com
STATUS:CANCELLED
SUMMARY:Spring Day
TRANSP:TRANSPARENT
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20290501
DTEND;VALUE=DATE:20290502
UID:20290501_a4@google.com
SUMMARY:Spring Day
END:VEVENT
END:VCALENDAR
`.replaceAll('\n', '\r\n');

/** As Apple's Calendar exports one: rules, exceptions to them, alarms and a zone. */
const APPLE = `BEGIN:VCALENDAR
CALSCALE:GREGORIAN
PRODID:-//Apple Inc.//macOS 15.1//EN
VERSION:2.0
X-APPLE-CALENDAR-COLOR:#CC73E1
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
DTSTART:19810329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZNAME:GMT+2
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
DTSTART;VALUE=DATE:20211125
DURATION:P1D
RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH
EXDATE;VALUE=DATE:20311127
SUMMARY;LANGUAGE=en:Harvest
UID:HARVEST-1
BEGIN:VALARM
ACTION:NONE
DESCRIPTION:no end
TRIGGER;VALUE=DATE-TIME:19760401T005545Z
END:VALARM
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20200101
RRULE:FREQ=YEARLY;UNTIL=20310101
RDATE;VALUE=DATE:20300707,20300808
SUMMARY:New Year
UID:YEAR-1
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20300702
DTEND;VALUE=DATE:20300702
RECURRENCE-ID;VALUE=DATE:20310101
SUMMARY:New Year, kept in July
UID:YEAR-1
END:VEVENT
BEGIN:VEVENT
RECURRENCE-ID;VALUE=DATE:20300808
DTSTART;VALUE=DATE:20300808
STATUS:CANCELLED
UID:YEAR-1
END:VEVENT
END:VCALENDAR
`;

/** As Outlook exports one: a mark of UTF-8, and days from midnight to midnight. */
const OUTLOOK = `\ufeffBEGIN:VCALENDAR
PRODID:-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN
VERSION:2.0
METHOD:PUBLISH
X-MS-OLK-FORCEINSPECTOROPEN:TRUE
BEGIN:VEVENT
CLASS:PUBLIC
DTEND;TZID="W. Europe Standard Time":20300502T000000
DTSTART;TZID="W. Europe Standard Time":20300501T000000
RRULE:FREQ=YEARLY;UNTIL=20310430T220000Z;BYMONTHDAY=1;BYMONTH=5
SUMMARY;LANGUAGE=de:Tag der Arbeit
TRANSP:TRANSPARENT
UID:040000008200E00074C5B7101A82E008
X-MICROSOFT-CDO-BUSYSTATUS:FREE
X-MICROSOFT-CDO-ALLDAYEVENT:TRUE
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20301003
DTEND;VALUE=DATE:20301004
SUMMARY:Tag der Einheit
UID:2
X-MICROSOFT-CDO-ALLDAYEVENT:TRUE
END:VEVENT
BEGIN:VEVENT
DTSTART;TZID="W. Europe Standard Time":20301008T140000
DTEND;TZID="W. Europe Standard Time":20301008T150000
SUMMARY:Jour fixe
UID:3
X-MICROSOFT-CDO-ALLDAYEVENT:FALSE
END:VEVENT
BEGIN:VEVENT
DTSTART:20301109T230000Z
DTEND:20301110T230000Z
SUMMARY:Abroad
UID:4
X-MICROSOFT-CDO-ALLDAYEVENT:TRUE
END:VEVENT
BEGIN:VEVENT
DTSTART:20301111
SUMMARY:No VALUE=DATE
UID:5
END:VEVENT
END:VCALENDAR
`.replaceAll('\n', '\r\n');
