import { type Command, Option } from 'commander';
import { expressionsOf, mayHash } from '../../core/cron/cron-fields.ts';
import { type ForeignFields, NotSayable } from '../../core/cron/foreign/foreign-fields.ts';
import { type System, SYSTEMS, translated } from '../../core/cron/foreign/foreign-forms.ts';
import { withCountedEnd } from '../../core/time/counted-end.ts';
import { isZone } from '../../core/zones/zone.ts';
import { type Cli, withExamples } from '../cli.ts';
import { CliError, EXIT, usageError } from '../exit-codes.ts';
import { NotCarriedOver, checkFields, checkTimes } from './crontab/imported.ts';

interface Options {
  from: System;
  timezone?: string;
}

export function addTranslate(program: Command, cli: Cli): void {
  const command = program
    .command('translate')
    .description(
      'print the fields of a schedule that say what an expression of another system says; exit code 1: none say it exactly',
    )
    .argument('<expression>', 'as the other system writes it')
    .addOption(new Option('--from <system>', 'whose it is').choices(SYSTEMS).makeOptionMandatory())
    .option('--timezone <zone>', 'in which that system reads times that name none (default: UTC)')
    .action((expression: string, { from, timezone }: Options) => {
      if (timezone !== undefined && !isZone(timezone))
        throw usageError(`--timezone ${timezone} is not the IANA name of a zone`);
      const fields = translation(expression, from, timezone ?? null);
      cli.surroundings.out.write(`${JSON.stringify(fields, null, 2)}\n`);
      for (const note of notesOn(fields)) cli.surroundings.err.write(`${note}\n`);
    });
  withExamples(
    command,
    "firelock translate '0 0 12 ? * 6#3' --from quartz --timezone Europe/Berlin",
    "firelock translate 'Mon..Fri 9:00' --from systemd",
  );
}

/** @throws CliError with the reason why there is none */
function translation(expression: string, from: System, timezone: string | null): ForeignFields {
  try {
    const fields = withCountedEnd(translated(expression, from, timezone));
    checkFields({ id: 'x', ...fields, target: { type: 'pull', queue: 'q' } });
    for (const cron of expressionsOf(fields.cron ?? [])) checkTimes(cron, fields.timezone ?? 'UTC');
    return fields;
  } catch (error) {
    if (error instanceof NotSayable || error instanceof NotCarriedOver)
      throw new CliError(EXIT.failed, `no fields say exactly this: ${error.message}`);
    throw error;
  }
}

function notesOn({ cron, everySeconds, timezone, startAt }: ForeignFields): string[] {
  return [
    ...(cron !== undefined && timezone === undefined
      ? ['its times are those of UTC, unless --timezone says otherwise']
      : []),
    ...(cron !== undefined && mayHash(cron)
      ? ['H is picked by firelock, from the schedule’s id: other times than before']
      : []),
    ...(everySeconds !== undefined && startAt === undefined
      ? ['counted from the creation of the schedule, unless startAt says from when']
      : []),
  ];
}
