import type { Command } from 'commander';
import { isTree, mergePatch } from '../../api/http/json/merge-patch.ts';
import type { RawJson } from '../../api/http/json/raw-json.ts';
import { jsonIn } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import type { ScheduleAnswer } from '../server/answers.ts';
import type { Answer } from '../server/server-calls.ts';
import { type Found, writeOver } from '../common/write-over.ts';
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
      await writeOver(
        cli,
        { noun: 'schedule', id },
        change,
        ({ nextFireAt, status }, { time }) =>
          `; ${nextFireAt === null ? status : `next fire ${time(nextFireAt)}`}`,
      );
    });
  withExamples(
    definitionOptions(command),
    'firelock schedule set invoices --cron "0 2 * * *" --timezone Europe/Berlin --url http://127.0.0.1:9000/run',
    'firelock schedule set invoices --label team:billing --set retry.maxAttempts=3 --unset timezone',
    'firelock schedule get invoices > invoices.json; firelock schedule set invoices --file invoices.json',
  );
}

type Write = (found: Found<ScheduleAnswer>) => Promise<Answer>;

async function namedChange(options: DefinitionOptions, { surroundings }: Cli): Promise<Write> {
  const { patch, payload } = await definitionOf(options, surroundings);
  if (payload === undefined && Object.keys(patch).length === 0)
    throw usageError('nothing to set; --help lists the options');
  const withPayload = (fields: Tree) => ({ ...fields, ...(payload && { payload }) });
  return ({ server, path, before, headers }) => {
    // A merge patch would merge the payload too, and forget its nulls.
    if (before !== null && !payload?.text.startsWith('{'))
      return server.call('PATCH', path, { body: withPayload(patch), headers });
    const base = before === null ? {} : withoutOldTrigger(before, patch);
    return server.call('PUT', path, { body: withPayload(mergePatch(base, patch) as Tree), headers });
  };
}

async function wholeChange(file: string, others: DefinitionOptions, { surroundings }: Cli): Promise<Write> {
  if (Object.keys(others).length > 0)
    throw usageError('--file holds the whole definition: leave out all other options');
  const body: RawJson = await jsonIn(file, surroundings);
  return ({ server, path, headers }) => server.call('PUT', path, { body, headers });
}

const TRIGGERS = ['cron', 'everySeconds', 'at', 'after'];

/** A new kind of timing replaces the old one, as in a PATCH. */
function withoutOldTrigger(definition: unknown, patch: Tree): Tree {
  const base = isTree(definition) ? definition : {};
  if (!TRIGGERS.some((name) => (patch[name] ?? null) !== null)) return base;
  return Object.fromEntries(Object.entries(base).filter(([name]) => !TRIGGERS.includes(name)));
}
