import type { Command } from 'commander';
import { isTree, mergePatch } from '../../api/http/json/merge-patch.ts';
import type { RawJson } from '../../api/http/json/raw-json.ts';
import { jsonIn } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import { type Answer, type Server, pathOf } from '../server/server-calls.ts';
import { type DefinitionOptions, type Tree, definitionOf, definitionOptions } from './definition-options.ts';

interface Options extends DefinitionOptions {
  file?: string;
}

export function addSetSchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('set')
    .description('create a schedule, or change what the options name and leave all else as it is')
    .argument('<id>')
    .option(
      '--file <file>',
      'its whole definition as JSON, in place of all other options (-: standard input)',
    )
    .action(async (id: string, { file, ...options }: Options) => {
      const change =
        file === undefined ? await namedChange(options, cli) : await wholeChange(file, options, cli);
      await write(cli, id, change);
    });
  withExamples(
    definitionOptions(command),
    'firelock schedule set invoices --cron "0 2 * * *" --timezone Europe/Berlin --url http://127.0.0.1:9000/run',
    'firelock schedule set invoices --label team:billing --set retry.maxAttempts=3 --unset timezone',
    'firelock schedule get invoices > invoices.json; firelock schedule set invoices --file invoices.json',
  );
}

/** Replaces the schedule that was read, or creates it if there was none; fails (412) if it has changed meanwhile. */
interface Change {
  create(server: Server, path: string): Promise<Answer>;
  update(server: Server, path: string, before: Answer): Promise<Answer>;
}

const ABSENT = { 'if-none-match': '*' };

async function namedChange(options: DefinitionOptions, { surroundings }: Cli): Promise<Change> {
  const { patch, payload } = await definitionOf(options, surroundings);
  if (payload === undefined && Object.keys(patch).length === 0)
    throw usageError('nothing to set; --help lists the options');
  const whole = (base: Tree) => ({ ...(mergePatch(base, patch) as Tree), ...(payload && { payload }) });
  return {
    create: (server, path) => server.call('PUT', path, { body: whole({}), headers: ABSENT }),
    update: (server, path, before) => {
      const headers = ifMatch(before);
      // A merge patch would merge the payload too, and forget its nulls.
      if (payload?.text.startsWith('{'))
        return server.call('PUT', path, { body: whole(withoutOldTrigger(before.body(), patch)), headers });
      return server.call('PATCH', path, { body: { ...patch, ...(payload && { payload }) }, headers });
    },
  };
}

async function wholeChange(file: string, others: DefinitionOptions, { surroundings }: Cli): Promise<Change> {
  if (Object.keys(others).length > 0)
    throw usageError('--file holds the whole definition: leave out all other options');
  const body: RawJson = await jsonIn(file, surroundings);
  return {
    create: (server, path) => server.call('PUT', path, { body, headers: ABSENT }),
    update: (server, path, before) => server.call('PUT', path, { body, headers: ifMatch(before) }),
  };
}

async function write(cli: Cli, id: string, change: Change): Promise<void> {
  const server = cli.server();
  const path = pathOf('schedules', id);
  const before = await server.find(path);
  const answer =
    before === null ? await change.create(server, path) : await change.update(server, path, before);
  const after = answer.body() as ScheduleAnswer;
  const was = before === null ? null : (before.body() as ScheduleAnswer).version;
  const done = was === null ? 'created' : was === after.version ? 'unchanged:' : 'changed';
  const said = `${done} schedule ${id}, version ${after.version}`;
  const output = cli.output();
  if (output.isJson) output.note(said);
  output.show(answer.text, (view) => [
    `${said}; ${after.nextFireAt === null ? after.status : `next fire ${view.time(after.nextFireAt)}`}`,
  ]);
}

function ifMatch({ etag }: Answer): Record<string, string> {
  return etag === null ? {} : { 'if-match': etag };
}

const TRIGGERS = ['cron', 'everySeconds', 'at', 'after'];

/** A new kind of timing replaces the old one, as in a PATCH. */
function withoutOldTrigger(definition: unknown, patch: Tree): Tree {
  const base = isTree(definition) ? definition : {};
  if (!TRIGGERS.some((name) => (patch[name] ?? null) !== null)) return base;
  return Object.fromEntries(Object.entries(base).filter(([name]) => !TRIGGERS.includes(name)));
}
