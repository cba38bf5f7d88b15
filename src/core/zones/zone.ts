import { DateTime } from 'luxon';
import type { Instant } from '../instant.ts';
import { zoneOffsets } from './zone-offsets.ts';

/** An IANA name or link. Offsets (`+02:00`), `local`, the empty string and ICU's own old names (`BST`) are not zones here. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(name) || isOnlyOfIcu(name)) return false;
  try {
    // Tried out: Intl.supportedValuesOf leaves out links that work.
    zoneOffsets(name);
    return true;
  } catch {
    return false;
  }
}

/** Wall-clock time with its offset, such as `2026-03-29T03:00:00.000+02:00`. */
export function localTime(at: Instant, timezone: string | null): string {
  const text = DateTime.fromMillis(at, { zone: timezone ?? 'UTC' }).toISO();
  if (text === null) throw new Error(`no local time in ${timezone ?? 'UTC'}`);
  return text;
}

const THREE_LETTERS_OF_IANA = new Set('CET EET EST GMT HST MET MST PRC ROC ROK UCT UTC WET'.split(' '));
const REMOVED_FROM_IANA = new Set(['US/PACIFIC-NEW', 'CANADA/EAST-SASKATCHEWAN']);

/** Intl knows these from old Java: `BST` would be Bangladesh, and `AST` Alaska, which is not what people mean by them. */
function isOnlyOfIcu(name: string): boolean {
  const upper = name.toUpperCase();
  if (upper.length === 3) return !THREE_LETTERS_OF_IANA.has(upper);
  return upper.startsWith('SYSTEMV/') || REMOVED_FROM_IANA.has(upper);
}

/** What to write in place of a name that `isZone` refuses, such as `write Europe/London`. Null: there is no suggestion. */
export function zoneHint(name: string): string | null {
  const text = name.trim();
  if (text === '' || text.length > MAX_LENGTH_TO_GUESS) return null;
  const zones = IN_PLACE_OF.get(text.toUpperCase()) ?? ofOffset(text) ?? ofCity(text);
  return zones === null ? null : `write ${zones}`;
}

/** America/Argentina/ComodRivadavia has 32 characters. */
const MAX_LENGTH_TO_GUESS = 40;

/** The zones in which most users of an abbreviation live. An abbreviation names an offset, but no rule for its changes. */
const ABBREVIATIONS = {
  ACDT: 'Australia/Adelaide',
  ACST: 'Australia/Adelaide or Australia/Darwin',
  ACT: 'Australia/Darwin',
  ADT: 'America/Halifax',
  AEDT: 'Australia/Sydney',
  AEST: 'Australia/Sydney or Australia/Brisbane',
  AET: 'Australia/Sydney',
  AGT: 'America/Argentina/Buenos_Aires',
  AKDT: 'America/Anchorage',
  AKST: 'America/Anchorage',
  ART: 'America/Argentina/Buenos_Aires, or Africa/Cairo',
  AST: 'America/Halifax, or America/Puerto_Rico',
  AWST: 'Australia/Perth',
  BET: 'America/Sao_Paulo',
  BRT: 'America/Sao_Paulo',
  BST: 'Europe/London',
  CAT: 'Africa/Maputo',
  CDT: 'America/Chicago',
  CEST: 'Europe/Berlin, or another city of that time',
  CNT: 'America/St_Johns',
  CST: 'America/Chicago, or Asia/Shanghai',
  CT: 'America/Chicago',
  CTT: 'Asia/Shanghai',
  EAT: 'Africa/Nairobi',
  ECT: 'America/Guayaquil, or Europe/Paris',
  EDT: 'America/New_York',
  EEST: 'Europe/Athens, or another city of that time',
  ET: 'America/New_York',
  HDT: 'Pacific/Honolulu',
  HKT: 'Asia/Hong_Kong',
  ICT: 'Asia/Bangkok',
  IDT: 'Asia/Jerusalem',
  IET: 'America/Indiana/Indianapolis',
  IST: 'Asia/Kolkata, or Europe/Dublin, or Asia/Jerusalem',
  JST: 'Asia/Tokyo',
  KST: 'Asia/Seoul',
  MDT: 'America/Denver',
  MIT: 'Pacific/Apia',
  MSK: 'Europe/Moscow',
  MT: 'America/Denver',
  NDT: 'America/St_Johns',
  NET: 'Asia/Yerevan',
  NST: 'America/St_Johns',
  NZDT: 'Pacific/Auckland',
  NZST: 'Pacific/Auckland',
  PDT: 'America/Los_Angeles',
  PKT: 'Asia/Karachi',
  PLT: 'Asia/Karachi',
  PNT: 'America/Phoenix',
  PRT: 'America/Puerto_Rico',
  PST: 'America/Los_Angeles',
  PT: 'America/Los_Angeles',
  SAST: 'Africa/Johannesburg',
  SGT: 'Asia/Singapore',
  SST: 'Pacific/Pago_Pago, or Pacific/Guadalcanal',
  VST: 'Asia/Ho_Chi_Minh',
  WAT: 'Africa/Lagos',
  WEST: 'Europe/Lisbon',
  WIB: 'Asia/Jakarta',
  Z: 'UTC',
};

/** Names that the zone data once had, and names that only Intl has. */
const NO_LONGER_ZONES = {
  'CANADA/EAST-SASKATCHEWAN': 'America/Regina',
  'SYSTEMV/AST4': 'America/Puerto_Rico',
  'SYSTEMV/AST4ADT': 'America/Halifax',
  'SYSTEMV/CST6': 'America/Regina',
  'SYSTEMV/CST6CDT': 'America/Chicago',
  'SYSTEMV/EST5': 'America/Panama',
  'SYSTEMV/EST5EDT': 'America/New_York',
  'SYSTEMV/HST10': 'Pacific/Honolulu',
  'SYSTEMV/MST7': 'America/Phoenix',
  'SYSTEMV/MST7MDT': 'America/Denver',
  'SYSTEMV/PST8': 'Pacific/Pitcairn',
  'SYSTEMV/PST8PDT': 'America/Los_Angeles',
  'SYSTEMV/YST9': 'Pacific/Gambier',
  'SYSTEMV/YST9YDT': 'America/Anchorage',
  'US/PACIFIC-NEW': 'America/Los_Angeles',
};

const IN_PLACE_OF: ReadonlyMap<string, string> = new Map(Object.entries({ ...ABBREVIATIONS, ...NO_LONGER_ZONES }));

/** `+02:00`, `UTC+2`, `GMT-5`. In these zone names the sign is that of POSIX: reversed. */
function ofOffset(text: string): string | null {
  const [, sign, hourText, minutes = '00'] = /^(?:UTC|GMT|Etc\/UTC)?([+-])(\d{1,2})(?::?(\d\d))?$/i.exec(text) ?? [];
  if (sign === undefined) return null;
  const hour = Number(hourText);
  if (hour === 0 && Number(minutes) === 0) return 'UTC';
  const name = `Etc/GMT${sign === '+' ? '-' : '+'}${hour}`;
  const city = `the zone of a city, such as ${sign === '+' ? 'Europe/Berlin' : 'America/New_York'}`;
  return Number(minutes) === 0 && isZone(name) ? `${city}, or ${name}` : city;
}

/** `Berlin`, `New York`, `Europe/New York`. */
function ofCity(text: string): string | null {
  const underscored = text.replace(/[ _]+/g, '_');
  if (isZone(underscored)) return underscored;
  const city = underscored.slice(underscored.lastIndexOf('/') + 1).toLowerCase();
  return zoneOfCity().get(city) ?? null;
}

let cities: ReadonlyMap<string, string> | undefined;

/** Read once, at the first use. Intl gives the old spelling of some; `Asia/Calcutta` is right nevertheless. */
function zoneOfCity(): ReadonlyMap<string, string> {
  cities ??= new Map(
    Intl.supportedValuesOf('timeZone').map((zone) => [zone.slice(zone.lastIndexOf('/') + 1).toLowerCase(), zone]),
  );
  return cities;
}
