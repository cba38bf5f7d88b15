import ICAL from 'ical.js';
import { failure } from '../../exit-codes.ts';

/** One event of an iCalendar file (RFC 5545). */
export interface IcsEvent {
  /** Where it begins in the file. */
  line: number;
  /** What it is made of; null: it has a time of day, so that nothing more is read of it. */
  component: ICAL.Component | null;
  /** Its lines, unfolded. */
  lines: readonly string[];
  title: string;
  /** For people: its title, and the line at which it begins. */
  name: string;
  /** Ends the command: what is wrong with this event. */
  refuse(why: string): never;
}

/** An event that is read. */
export type ReadEvent = IcsEvent & { component: ICAL.Component };

/** Zones, alarms and tasks are passed over. @throws CliError that names the line where it cannot be read */
export function eventsIn(text: string, file: string): { events: IcsEvent[]; replaced: number } {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  if (!lines.some((line) => /^BEGIN:VCALENDAR\s*$/i.test(line)))
    throw failure(`${file}: not an iCalendar file: it has no line BEGIN:VCALENDAR`);
  const sources: Source[] = [];
  let begun: number | null = null;
  for (const [index, line] of lines.entries()) {
    const [, edge] = /^(BEGIN|END):VEVENT\s*$/i.exec(line) ?? [];
    if (edge === undefined) continue;
    const isEnd = edge.toUpperCase() === 'END';
    if (isEnd !== (begun !== null)) throw failure(`${file}:${index + 1}: ${line.trim()} is out of place`);
    if (begun !== null) sources.push({ logical: unfolded(lines.slice(begun, index + 1), begun + 1), first: begun + 1 });
    begun = isEnd ? null : index;
  }
  if (begun !== null) throw failure(`${file}:${begun + 1}: the event has no end: the file is cut off`);
  const newest = newestOf(sources);
  return { events: newest.map((source) => eventOf(source, file)), replaced: sources.length - newest.length };
}

interface Source {
  logical: readonly Line[];
  first: number;
}

/** Of several versions of one event, or of one of its series, the one with the highest SEQUENCE; of equal ones, all. */
function newestOf(sources: readonly Source[]): Source[] {
  const highest = new Map<string, number>();
  const keyed = sources.map((source) => {
    const uid = valueIn(source, 'UID');
    const key = uid === null ? null : `${uid}\0${valueIn(source, 'RECURRENCE-ID') ?? ''}`;
    const sequence = Number(valueIn(source, 'SEQUENCE') ?? 0) || 0;
    if (key !== null) highest.set(key, Math.max(highest.get(key) ?? 0, sequence));
    return { source, key, sequence };
  });
  return keyed.filter(({ key, sequence }) => key === null || sequence === highest.get(key)).map(({ source }) => source);
}

/** What stands after the colon of the first line of a name; null: there is none. */
function valueIn({ logical }: Source, name: string): string | null {
  const line = logical.find(({ text }) => isNamed(text, name))?.text;
  return line === undefined ? null : line.slice(line.indexOf(':') + 1).trim();
}

function isNamed(text: string, name: string): boolean {
  return text.slice(0, name.length).toUpperCase() === name && /[;:]/.test(text[name.length] ?? '');
}

/** Programs write these for what an event has not. */
const EMPTY = /^(?:RRULE|RDATE|EXDATE|DTEND|DURATION|RECURRENCE-ID)(?:;[^:]*)?:[ \t]*$/i;
/** Midnight may begin a whole day. */
const TIMED = /^DTSTART(?:;[^:]*)?:\d{8}T(?!000000)\d{6}/i;

function eventOf(source: Source, file: string): IcsEvent {
  const { first } = source;
  const logical = source.logical.filter(({ text }) => !EMPTY.test(text));
  const isTimed = logical.some(({ text }) => TIMED.test(text));
  const component = isTimed ? null : componentIn(logical, first, file);
  const summary = component?.getFirstPropertyValue('summary') ?? valueIn(source, 'SUMMARY');
  const title = typeof summary === 'string' ? summary : 'an event without a title';
  const name = `“${shortened(title)}” (line ${first})`;
  const refuse = (why: string): never => {
    throw failure(`${file}:${first}: ${name.replace(/ \(.*?\)$/, '')}: ${why}`);
  };
  return { line: first, component, lines: logical.map(({ text }) => text), title, name, refuse };
}

/** @throws CliError that names the first line that cannot be read */
function componentIn(logical: readonly Line[], first: number, file: string): ICAL.Component {
  const faultAt = ({ text, line }: Line, why: string) => failure(`${file}:${line}: ${why}${shortened(text)}`);
  for (const one of logical) {
    if (!one.text.includes(':')) throw faultAt(one, 'cannot be read: ');
    if (READ.test(one.text) && one.text.length > MAX_LINE) throw faultAt(one, `longer than ${MAX_LINE} characters: `);
  }
  const read = logical.filter(({ text }) => READ.test(text));
  const component = componentOf(read.map(({ text }) => text));
  if (component !== null) return component;
  const broken = read.slice(1, -1).find(({ text }) => !isBound(text) && componentOf([BEGIN, text, END]) === null);
  throw faultAt(broken ?? { text: BEGIN, line: first }, 'cannot be read: ');
}

/** The library takes the square of a line's length for its parameters, so it gets no others, and none that are long. */
const READ =
  /^(?:BEGIN|END|DTSTART|DTEND|DURATION|RDATE|EXDATE|RECURRENCE-ID|UID|STATUS|SUMMARY|X-MICROSOFT-CDO-ALLDAYEVENT)[;:]/i;
const MAX_LINE = 65_536;

interface Line {
  text: string;
  line: number;
}

/** A line that begins with a blank goes on with the one before it. */
function unfolded(source: readonly string[], first: number): Line[] {
  const found: { parts: string[]; line: number }[] = [];
  for (const [index, line] of source.entries())
    if (/^[ \t]/.test(line)) found.at(-1)?.parts.push(line.slice(1));
    else if (line !== '') found.push({ parts: [line], line: first + index });
  return found.map(({ parts, line }) => ({ text: parts.join(''), line }));
}

/** Null: some line is none of iCalendar. */
function componentOf(lines: readonly string[]): ICAL.Component | null {
  try {
    return new ICAL.Component(ICAL.parse(lines.join('\r\n')) as unknown[]);
  } catch {
    return null;
  }
}

const [BEGIN, END] = ['BEGIN:VEVENT', 'END:VEVENT'];

function isBound(line: string): boolean {
  return /^(?:BEGIN|END):/i.test(line);
}

function shortened(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
