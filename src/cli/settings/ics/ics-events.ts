import ICAL from 'ical.js';
import { failure } from '../../exit-codes.ts';

/** One event of an iCalendar file (RFC 5545). */
export interface IcsEvent {
  component: ICAL.Component;
  /** Its lines, unfolded. */
  lines: readonly string[];
  /** For people: its title, and the line at which it begins. */
  name: string;
  /** Ends the command: what is wrong with this event. */
  refuse(why: string): never;
}

/** Zones, alarms and tasks are passed over. @throws CliError that names the line where it cannot be read */
export function eventsIn(text: string, file: string): IcsEvent[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  if (!lines.some((line) => /^BEGIN:VCALENDAR\s*$/i.test(line)))
    throw failure(`${file}: not an iCalendar file: it has no line BEGIN:VCALENDAR`);
  const events: IcsEvent[] = [];
  let begun: number | null = null;
  for (const [index, line] of lines.entries()) {
    const [, edge] = /^(BEGIN|END):VEVENT\s*$/i.exec(line) ?? [];
    if (edge === undefined) continue;
    const isEnd = edge.toUpperCase() === 'END';
    if (isEnd !== (begun !== null)) throw failure(`${file}:${index + 1}: ${line.trim()} is out of place`);
    if (begun !== null) events.push(eventOf(lines.slice(begun, index + 1), begun + 1, file));
    begun = isEnd ? null : index;
  }
  if (begun !== null) throw failure(`${file}:${begun + 1}: the event has no end: the file is cut off`);
  return events;
}

function eventOf(source: readonly string[], first: number, file: string): IcsEvent {
  const logical = unfolded(source, first);
  const faultAt = ({ text, line }: Line, why: string) => failure(`${file}:${line}: ${why}${shortened(text)}`);
  for (const one of logical) {
    if (!one.text.includes(':')) throw faultAt(one, 'cannot be read: ');
    if (READ.test(one.text) && one.text.length > MAX_LINE)
      throw faultAt(one, `longer than ${MAX_LINE} characters: `);
  }
  const read = logical.filter(({ text }) => READ.test(text));
  const component = componentOf(read.map(({ text }) => text));
  if (component === null) {
    const broken = read
      .slice(1, -1)
      .find(({ text }) => !isBound(text) && componentOf([BEGIN, text, END]) === null);
    throw faultAt(broken ?? { text: BEGIN, line: first }, 'cannot be read: ');
  }
  const title = component.getFirstPropertyValue('summary');
  const name = `“${shortened(typeof title === 'string' ? title : 'an event without a title')}” (line ${first})`;
  const refuse = (why: string): never => {
    throw failure(`${file}:${first}: ${name.replace(/ \(.*?\)$/, '')}: ${why}`);
  };
  return { component, lines: logical.map(({ text }) => text), name, refuse };
}

/** The library takes the square of a line's length for its parameters, so it gets no others, and none that are long. */
const READ =
  /^(?:BEGIN|END|DTSTART|DTEND|DURATION|RDATE|EXDATE|RRULE|RECURRENCE-ID|UID|STATUS|SUMMARY|X-MICROSOFT-CDO-ALLDAYEVENT)[;:]/i;
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
