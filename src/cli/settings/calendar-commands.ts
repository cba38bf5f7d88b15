import type { Command } from 'commander';
import { collect, fileText } from '../common/arguments.ts';
import { type Cli, group, withExamples } from '../cli.ts';
import { addDelete } from '../common/confirmed-actions.ts';
import { usageError } from '../exit-codes.ts';
import type { CalendarAnswer } from '../server/answers.ts';
import { type ListOptions, listOptions, showList } from '../server/list-pages.ts';
import { type Server, pathOf } from '../server/server-calls.ts';

interface SetOptions {
  description?: string;
  date?: string[];
  add?: string[];
  remove?: string[];
  ics?: string;
  years?: string;
}

export function addCalendarCommands(program: Command, cli: Cli): void {
  const calendar = group(program, 'calendar', 'calendars: sets of days on which schedules do not fire');
  addList(calendar, cli);
  addGet(calendar, cli);
  addSet(calendar, cli);
  const what = { noun: 'calendar', collection: 'calendars' };
  withExamples(addDelete(calendar, cli, what), 'firelock calendar delete holidays --yes');
}

function addList(calendar: Command, cli: Cli): void {
  const command = calendar
    .command('list')
    .description('list calendars, by their ids')
    .option('--q <text>', 'only with this text in the id or the description')
    .action(({ q, ...pages }: ListOptions & { q?: string }) =>
      showList<CalendarAnswer>(cli, { path: 'calendars', query: { q }, pages, hasTimes: false }, (view) => [
        { title: 'ID', cell: ({ id }) => id },
        { title: 'DATES', cell: ({ dates }) => dates.length, align: 'right' },
        { title: 'UPDATED', cell: ({ updatedAt }) => view.cellTime(updatedAt) },
        { title: 'DESCRIPTION', cell: ({ description }) => description, shrinks: true },
      ]),
    );
  withExamples(listOptions(command), 'firelock calendar list');
}

function addGet(calendar: Command, cli: Cli): void {
  const command = calendar
    .command('get')
    .description('show a calendar')
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf('calendars', id)), (calendar: CalendarAnswer, view) => [
        ...view.pairs([
          ['id', id],
          ['description', calendar.description],
          ['version', String(calendar.version)],
          ['updated', view.time(calendar.updatedAt)],
        ]),
        ...calendar.dates,
      ]),
    );
  withExamples(command, 'firelock calendar get holidays');
}

function addSet(calendar: Command, cli: Cli): void {
  const command = calendar
    .command('set')
    .description('create a calendar, or change what the options name and leave all else as it is')
    .argument('<id>')
    .option('--description <text>', 'what it is for')
    .option('--date <date>', 'these dates and no others: 2030-12-25, 2030-12-31/2031-01-01; several', collect)
    .option(
      '--ics <file>',
      'the whole days of the events of this iCalendar file and no others (-: standard input)',
    )
    .option('--years <years>', 'of --ics: 2026, or 2026..2028 (default: this year and the next two)')
    .option('--add <date>', 'this date or range as well; several', collect)
    .option('--remove <date>', 'not this date or range any more, as it is listed; several', collect)
    .action(async (id: string, options: SetOptions) => {
      if (Object.keys(options).length === 0) throw usageError('nothing to set; --help lists the options');
      const { answer, isNew } = await write(cli.server(), id, await withIcs(cli, options));
      const { dates, version } = answer.body() as CalendarAnswer;
      const said = `${isNew ? 'created' : 'set'} calendar ${id}, version ${version}`;
      const output = cli.output();
      if (output.isJson) output.note(said);
      output.show(answer.text, () => [`${said}: ${dates.length} dates and ranges`]);
    });
  withExamples(
    command,
    'firelock calendar set holidays --add 2030-12-25 --add 2030-12-31/2031-01-01',
    'firelock calendar set holidays --remove 2030-12-25',
    'firelock calendar set us-holidays --ics holidays.ics --years 2030..2032',
  );
}

/** The days of the file are dates as --date gives them. The library for them is loaded only here. */
async function withIcs(cli: Cli, options: SetOptions): Promise<SetOptions> {
  const { ics, years, date = [] } = options;
  if (ics === undefined && years !== undefined) throw usageError('--years belongs to --ics');
  if (ics === undefined) return options;
  const { holidaysIn, yearsIn } = await import('./ics/ics-calendar.ts');
  const asked = { file: ics, years: yearsIn(years, cli.surroundings) };
  const { dates, notes } = holidaysIn(await fileText(ics, cli.surroundings), asked);
  for (const note of notes) cli.output().note(note);
  if (dates.length === 0) throw usageError(`${ics} has no whole days of these years; nothing is changed`);
  return { ...options, date: [...dates, ...date] };
}

/** Sends the whole calendar as it was read, with the named changes; fails (412) if it has changed meanwhile. */
async function write(server: Server, id: string, { description, date, add = [], remove = [] }: SetOptions) {
  const path = pathOf('calendars', id);
  const found = await server.find(path);
  const before = found === null ? { description: null, dates: [] } : (found.body() as CalendarAnswer);
  const base = date ?? before.dates;
  const absent = remove.filter((entry) => !base.includes(entry));
  if (absent.length > 0) throw usageError(`calendar ${id} does not list ${absent.join(', ')}`);
  const kept = base.filter((entry) => !remove.includes(entry));
  const body = {
    description: description ?? before.description,
    dates: [...kept, ...add.filter((entry) => !kept.includes(entry))],
  };
  const headers: Record<string, string> =
    found === null ? { 'if-none-match': '*' } : found.etag === null ? {} : { 'if-match': found.etag };
  return { answer: await server.call('PUT', path, { body, headers }), isNew: found === null };
}
