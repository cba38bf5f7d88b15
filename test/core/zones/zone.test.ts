import { describe, expect, it } from 'vitest';
import { CronError, cronTimes } from '../../../src/core/cron/cron.ts';
import { isZone, localTime, zoneHint } from '../../../src/core/zones/zone.ts';
import { type Segment, zoneOffsets } from '../../../src/core/zones/zone-offsets.ts';
import { at, firesAfter } from '../time/support.ts';

/** What changed in a year, as `instant: offset in minutes`. */
function changesOf(zone: string, year: number): string[] {
  const offsets = zoneOffsets(zone);
  const end = Date.UTC(year + 1, 0, 1) / 1000;
  const changes: string[] = [];
  let last = offsets.at(Date.UTC(year, 0, 1) / 1000 - 1);
  for (let segment: Segment; last.end < end; last = segment) {
    segment = offsets.at(last.end);
    if (segment.offset === last.offset) continue;
    changes.push(`${new Date(segment.start * 1000).toISOString().slice(0, 16)}: ${segment.offset / 60}`);
  }
  return changes;
}

describe('a zone', () => {
  it.each(['UTC', 'Europe/Paris', 'europe/paris', 'Etc/GMT+5', 'EST5EDT', 'US/Eastern', 'ASIA/CALCUTTA'])(
    '%s is one',
    (name) => {
      expect(isZone(name)).toBe(true);
      expect(cronTimes('0 0 * * *', name, '').next(0)).not.toBeNull();
    },
  );
  it.each(['', 'local', 'system', '+02:00', 'UTC+2', 'Mars/Phobos', 'Europe/Paris ', '../etc'])(
    '%j is none',
    (name) => {
      expect(isZone(name)).toBe(false);
    },
  );
  it('that has become unknown is reported', () => {
    expect(() => cronTimes('0 0 * * *', 'Mars/Phobos', '')).toThrow(CronError);
    expect(() => cronTimes('0 0 * * *', 'Mars/Phobos', '')).toThrow('Mars/Phobos is not a time zone known here');
  });
  it('gives local time with its offset', () => {
    expect(localTime(at('2026-03-29T01:00:00Z'), 'Europe/Paris')).toBe('2026-03-29T03:00:00.000+02:00');
    expect(localTime(at('2026-03-29T01:00:00Z'), null)).toBe('2026-03-29T01:00:00.000Z');
  });
  it('is the same under a link and in any letter case', () => {
    const fires = (zone: string) => firesAfter('30 2 * * *', zone, '2026-03-07T12:00:00Z', 3);
    expect(fires('US/Eastern')).toEqual(fires('America/New_York'));
    expect(fires('aMERICA/nEW_yORK')).toEqual(fires('America/New_York'));
  });
});

/** Links of the IANA zone data (file backward) that have no region, or an odd one; in no list of Intl's. */
const LINKS =
  'CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel ' +
  'Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey ' +
  'UCT UTC Universal W-SU WET Zulu Etc/GMT-14 Etc/GMT+12 Etc/GMT0 Etc/UCT Etc/Zulu Asia/Calcutta Europe/Kiev ' +
  'US/Eastern US/East-Indiana US/Indiana-Starke US/Pacific Canada/Saskatchewan Brazil/East Chile/EasterIsland Mexico/BajaNorte ' +
  'America/Buenos_Aires America/Argentina/ComodRivadavia Australia/ACT Australia/LHI Arctic/Longyearbyen';

/** All names that Intl of Node.js knows and the IANA zone data do not, found by trying every three letters and all words of the binary. */
const ONLY_OF_ICU =
  'ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT IET IST JST MIT NET NST PLT PNT PRT PST SST VST ' +
  'SystemV/AST4 SystemV/AST4ADT SystemV/CST6 SystemV/CST6CDT SystemV/EST5 SystemV/EST5EDT SystemV/HST10 SystemV/MST7 ' +
  'SystemV/MST7MDT SystemV/PST8 SystemV/PST8PDT SystemV/YST9 SystemV/YST9YDT US/Pacific-New Canada/East-Saskatchewan';

const inEveryCase = (name: string): string[] => [
  name,
  name.toLowerCase(),
  name.toUpperCase(),
  Array.from(name, (letter, index) => (index % 2 ? letter.toUpperCase() : letter.toLowerCase())).join(''),
];

describe('the names of zones', () => {
  it('are those of the IANA zone data, links among them, in any letter case', () => {
    const names = [...LINKS.split(' '), ...Intl.supportedValuesOf('timeZone')];
    expect(names.flatMap(inEveryCase).filter((name) => !isZone(name))).toEqual([]);
  });

  it('do not include names that only Intl knows, in any letter case', () => {
    expect(ONLY_OF_ICU.split(' ').flatMap(inEveryCase).filter(isZone)).toEqual([]);
  });

  it('of up to three letters are these and no others', () => {
    const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
    const short: string[] = [];
    for (const one of letters)
      for (const two of ['', ...letters]) for (const three of ['', ...letters]) short.push(one + two + three);
    expect([...new Set(short.filter(isZone))]).toEqual(
      'CET EET EST GB GMT HST MET MST NZ PRC ROC ROK UCT UTC WET'.split(' '),
    );
  });

  it.each([
    ['BST', 'write Europe/London'],
    ['bst', 'write Europe/London'],
    ['IST', 'write Asia/Kolkata, or Europe/Dublin, or Asia/Jerusalem'],
    ['PST', 'write America/Los_Angeles'],
    ['CEST', 'write Europe/Berlin, or another city of that time'],
    ['SystemV/EST5EDT', 'write America/New_York'],
    ['US/Pacific-New', 'write America/Los_Angeles'],
    ['Canada/East-Saskatchewan', 'write America/Regina'],
    ['Berlin', 'write Europe/Berlin'],
    ['America/New York', 'write America/New_York'],
    [' Europe/Berlin', 'write Europe/Berlin'],
    ['UTC+2', 'write the zone of a city, such as Europe/Berlin, or Etc/GMT-2'],
    ['-05:00', 'write the zone of a city, such as America/New_York, or Etc/GMT+5'],
    ['+05:30', 'write the zone of a city, such as Europe/Berlin'],
    ['+00:00', 'write UTC'],
    ['Z', 'write UTC'],
    ['', null],
    ['local', null],
    ['Mars/Phobos', null],
    ['constructor', null],
    ['x'.repeat(100_000), null],
  ])('of a refused %j it is said: %j', (name, hint) => {
    expect(isZone(name)).toBe(false);
    expect(zoneHint(name)).toBe(hint);
  });

  it('that are proposed in place of a refused one are accepted', () => {
    for (const name of `${ONLY_OF_ICU} CEST EDT NZDT SGT WIB CT Z UTC-3`.split(' ')) {
      const proposed = [...(zoneHint(name) ?? '').matchAll(/[A-Z]\w*\/[\w/+-]+|UTC/g)].map(String);
      expect({ name, count: proposed.length > 0, wrong: proposed.filter((zone) => !isZone(zone)) }).toEqual({
        name,
        count: true,
        wrong: [],
      });
    }
  });
});

describe('the changes of a zone’s offset', () => {
  it.each([
    ['Europe/Berlin', 2026, ['2026-03-29T01:00: 120', '2026-10-25T01:00: 60']],
    ['Asia/Tokyo', 2026, []],
    // A month apart, for Ramadan.
    ['Africa/Casablanca', 2022, ['2022-03-27T02:00: 0', '2022-05-08T02:00: 60']],
    [
      'Africa/Cairo',
      2010,
      ['2010-04-29T22:00: 180', '2010-08-10T21:00: 120', '2010-09-09T22:00: 180', '2010-09-30T21:00: 120'],
    ],
    // A week apart.
    ['America/Noronha', 2000, ['2000-02-27T01:00: -120', '2000-10-08T02:00: -60', '2000-10-15T01:00: -120']],
    ['Africa/Freetown', 1939, []],
    ['Australia/Lord_Howe', 2026, ['2026-04-04T15:00: 630', '2026-10-03T15:30: 660']],
    ['Pacific/Apia', 2011, ['2011-04-02T14:00: -660', '2011-09-24T14:00: -600', '2011-12-30T10:00: 840']],
    ['Pacific/Kwajalein', 1993, ['1993-08-21T12:00: 720']],
    // On the first second of a year, and from a local mean time with seconds.
    ['Asia/Singapore', 1981, ['1981-12-31T16:00: 480']],
    ['Africa/Monrovia', 1972, ['1972-01-07T00:44: 0']],
  ])('in %s in %s', (zone, year, changes) => {
    expect(changesOf(zone, year)).toEqual(changes);
  });

  it('agree with Intl at every hour of years with odd ones', () => {
    for (const [zone, year] of [
      ['America/Nuuk', 2024],
      ['Africa/El_Aaiun', 2026],
      ['Antarctica/Troll', 2026],
      ['America/Caracas', 2007],
      ['Asia/Pyongyang', 2018],
      ['Europe/Volgograd', 2020],
    ] as const) {
      const offsets = zoneOffsets(zone);
      const format = new Intl.DateTimeFormat('sv', {
        timeZone: zone,
        dateStyle: 'short',
        timeStyle: 'medium',
      });
      for (let hour = at(`${year}-01-01T00:00:00Z`); hour < at(`${year + 1}-01-01T00:00:00Z`); hour += 3_600_000) {
        const wall = at(`${format.format(hour).replace(' ', 'T')}Z`);
        if (offsets.at(hour / 1000).offset * 1000 !== wall - hour) throw new Error(`${zone} at ${hour}`);
      }
    }
  });

  it('around a new year leave no local time out and repeat none', () => {
    // At midnight the clock was put back to 23:00 of the old year, whose last hour in UTC this was.
    const from = '1985-12-31T21:45:00Z';
    expect(firesAfter('30 22,23,0 * * *', 'Africa/Casablanca', from, 3)).toEqual([
      '1985-12-31T22:30:00Z',
      '1986-01-01T00:30:00Z',
      '1986-01-01T22:30:00Z',
    ]);
    expect(firesAfter('30 * * * *', 'Africa/Casablanca', from, 3)).toEqual([
      '1985-12-31T22:30:00Z',
      '1985-12-31T23:30:00Z',
      '1986-01-01T00:30:00Z',
    ]);
  });
});
