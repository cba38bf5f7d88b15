import type { Command } from 'commander';
import { collect, fileText } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { failure, usageError } from '../exit-codes.ts';
import type { CalendarAnswer } from '../server/answers.ts';
import { addNamedGroup, setNamed } from './named-things.ts';

interface SetOptions {
  description?: string;
  validUntil?: string;
  date?: string[];
  add?: string[];
  remove?: string[];
  ics?: string;
  years?: string;
  only?: string[];
  without?: string[];
}

export function addCalendarCommands(program: Command, cli: Cli): void {
  const calendar = addNamedGroup<CalendarAnswer>(program, cli, {
    ...{ noun: 'calendar', example: 'holidays' },
    description: 'calendars: sets of days on which schedules do not fire',
    columns: [{ title: 'DATES', cell: ({ dates }) => dates.length, align: 'right' }],
    pairs: ({ validUntil }) => [['valid until', validUntil]],
    lines: ({ dates }) => dates,
  });
  addSet(calendar, cli);
}

function addSet(calendar: Command, cli: Cli): void {
  const command = calendar
    .command('set <id>')
    .description('create a calendar, or change what the options name and leave all else as it is')
    .option('--description <text>', 'what it is for')
    .option('--valid-until <date>', 'the last day of which it says anything; from 90 days before on you are told')
    .option('--date <date>', 'these dates and no others: 2030-12-25, 2030-12-31/2031-01-01; several', collect)
    .option('--ics <file>', 'the whole days of the events of this iCalendar file and no others (-: standard input)')
    .option('--years <years>', 'of --ics: 2026, or 2026..2028 (default: this year and the next two)')
    .option('--only <text>', 'of --ics: only events with this in their title; several: with one of them', collect)
    .option('--without <text>', 'of --ics: no events with this in their title; several', collect)
    .option('--add <date>', 'this date or range as well; several', collect)
    .option('--remove <date>', 'not this date or range any more, as it is listed; several', collect)
    .action(async (id: string, options: SetOptions) => {
      if (Object.keys(options).length === 0) throw usageError('nothing to set; --help lists the options');
      const given = await withIcs(cli, options);
      await setNamed<CalendarAnswer>(cli, { noun: 'calendar', id }, (before) => changed(id, before, given));
    });
  withExamples(
    command,
    'firelock calendar set holidays --add 2030-12-25 --add 2030-12-31/2031-01-01',
    'firelock calendar set holidays --remove 2030-12-25 --valid-until 2032-12-31',
    'firelock calendar set us-holidays --ics holidays.ics --years 2030..2032',
  );
}

/** The days of the file are dates as --date gives them. The library for them is loaded only here. */
async function withIcs(cli: Cli, options: SetOptions): Promise<SetOptions> {
  const { ics, years, only, without, date = [] } = options;
  const ofIcs = Object.entries({ years, only, without }).find(([, value]) => value !== undefined);
  if (ics === undefined && ofIcs !== undefined) throw usageError(`--${ofIcs[0]} belongs to --ics`);
  if (ics === undefined) return options;
  const { holidaysIn, yearsIn } = await import('./ics/ics-calendar.ts');
  const asked = { file: ics, years: yearsIn(years, cli.surroundings), only, without };
  const { dates, notes } = holidaysIn(await fileText(ics, cli.surroundings), asked);
  for (const note of notes) cli.output().note(note);
  if (dates.length === 0) throw failure(`${ics} has no whole days of these years; nothing is changed`);
  return { ...options, date: [...dates, ...date] };
}

/** The calendar as it was read, with the named changes. */
function changed(
  id: string,
  stored: CalendarAnswer | null,
  { description, validUntil, date, add = [], remove = [] }: SetOptions,
) {
  const before = stored ?? { description: null, dates: [], validUntil: null };
  const base = date ?? before.dates;
  const absent = remove.filter((entry) => !base.includes(entry));
  if (absent.length > 0) throw failure(`calendar ${id} does not list ${absent.join(', ')}`);
  const kept = base.filter((entry) => !remove.includes(entry));
  return {
    description: description ?? before.description,
    validUntil: validUntil ?? before.validUntil,
    dates: [...kept, ...add.filter((entry) => !kept.includes(entry))],
  };
}
