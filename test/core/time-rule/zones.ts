import { localClock } from './local-clock.ts';

/** The first minute (UTC, since 1970) at which a zone's wall clock has jumped, and what it shows before and after. */
export interface Transition {
  zone: string;
  utcMinute: number;
  before: number;
  after: number;
}

/** Names that Intl.supportedValuesOf leaves out and that people write all the same. */
const LINKS =
  'America/Godthab Asia/Calcutta Asia/Saigon Asia/Katmandu Asia/Rangoon Europe/Kiev Europe/Nicosia Africa/Asmera Atlantic/Faeroe ' +
  'Pacific/Samoa Pacific/Kanton Pacific/Enderbury America/Buenos_Aires America/Indianapolis America/Coral_Harbour ' +
  'US/Eastern US/Central US/Mountain US/Pacific US/Alaska US/Hawaii US/Arizona Canada/Atlantic Canada/Newfoundland ' +
  'Brazil/East Chile/Continental Chile/EasterIsland Mexico/General Mexico/BajaNorte Cuba Egypt Eire GB GB-Eire Iceland Iran ' +
  'Israel Jamaica Japan Libya Navajo NZ NZ-CHAT Poland Portugal PRC ROC ROK Singapore Turkey W-SU Zulu GMT UTC Etc/UTC Etc/UCT ' +
  'Etc/GMT+5 Etc/GMT-14 EST MST HST EST5EDT CST6CDT MST7MDT PST8PDT WET CET MET EET ' +
  'Australia/ACT Australia/LHI Australia/NSW Australia/South Australia/Victoria Antarctica/South_Pole';

/** Zones with an odd past: skipped dates, half hours, two hours, midnight, twice a year more than twice. */
const ODD =
  'Pacific/Apia Pacific/Fakaofo Pacific/Kiritimati Pacific/Enderbury Pacific/Kwajalein Pacific/Norfolk Pacific/Fiji ' +
  'Australia/Lord_Howe Antarctica/Troll Antarctica/Casey America/Caracas America/Havana America/Sao_Paulo America/Santiago ' +
  'America/St_Johns America/Nuuk America/Scoresbysund Asia/Pyongyang Asia/Singapore Asia/Gaza Asia/Beirut Asia/Amman Asia/Tehran ' +
  'Africa/Cairo Africa/Casablanca Africa/El_Aaiun Africa/Juba Africa/Sao_Tome Europe/Lisbon Europe/Moscow Europe/Istanbul ' +
  'Europe/Volgograd Atlantic/Azores';

export const FIRST_YEAR = 2024;
export const LAST_YEAR = 2028;

/** Every zone there is, and the links. */
export function allZones(): string[] {
  return [...new Set([...Intl.supportedValuesOf('timeZone'), ...LINKS.split(' ')])];
}

/** Of every zone in 2024–2028. */
export function recentTransitions(): Map<string, Transition[]> {
  return new Map(allZones().map((zone) => [zone, transitionsOf(zone, FIRST_YEAR, LAST_YEAR)]));
}

/** Of the odd zones in 1980–2023. */
export function pastTransitions(): Map<string, Transition[]> {
  return new Map(ODD.split(' ').map((zone) => [zone, transitionsOf(zone, 1980, FIRST_YEAR - 1)]));
}

const WEEK = 7 * 1440;

/** Two changes within a week, back to where it was, would be missed; no zone does that. */
function transitionsOf(zone: string, firstYear: number, lastYear: number): Transition[] {
  const clock = localClock(zone);
  const offset = (minute: number): number => clock(minute) - minute;
  const found: Transition[] = [];
  const end = Date.UTC(lastYear + 1, 0, 1) / 60_000;
  for (let start = Date.UTC(firstYear, 0, 1) / 60_000; start < end; start += WEEK) {
    let [same, changed] = [start, start + WEEK];
    if (offset(same) === offset(changed)) continue;
    while (changed - same > 1) {
      const middle = Math.floor((same + changed) / 2);
      if (offset(middle) === offset(start)) same = middle;
      else changed = middle;
    }
    found.push({ zone, utcMinute: changed, before: clock(same) + 1, after: clock(changed) });
  }
  return found;
}
