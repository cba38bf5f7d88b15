import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { createToken } from './token-command.ts';
import { group, withExamples } from './tree.ts';

/** What starts the daemon, and what is done beside it rather than asked of its API. */
export function addDaemonCommands(program: Command, cli: Cli): void {
  const { daemon } = cli.surroundings;
  const serve = program
    .command('serve')
    .description('start the daemon, as firelock without a command does; it is configured by the environment')
    .action(async () => void (cli.exitCode = await daemon.serve()));
  withExamples(serve, 'DATABASE_URL=postgres://firelock@127.0.0.1/firelock firelock serve');
  const resume = program
    .command('resume')
    .description(
      'after a restored backup or a failover that lost data, with every instance stopped: begin at this moment',
    )
    .requiredOption('--from-now', 'record what was due before now as skipped (docs/restoring.md)')
    .action(async () => {
      const { resume } = await import('./resume-command.ts');
      cli.exitCode = await daemon.onDatabase(resume);
    });
  withExamples(resume, 'firelock resume --from-now');
  const migrate = program
    .command('migrate')
    .description('bring the schema of the database up to this version, as the daemon does at its start')
    .action(async () => {
      const { migrateNow } = await import('./migrate-command.ts');
      cli.exitCode = await daemon.onDatabase(migrateNow);
    });
  withExamples(
    migrate,
    'FIRELOCK_MIGRATION_DATABASE_URL=postgres://owner@127.0.0.1/firelock firelock migrate',
  );
  addTokenCommands(program, cli);
}

interface TokenOptions {
  role?: string;
  expires?: string;
}

function addTokenCommands(program: Command, cli: Cli): void {
  const token = group(program, 'token', 'tokens of callers of the API');
  const create = token
    .command('create')
    .description('make a token; prints it, and the line that tells the daemon of it (docs/security.md)')
    .argument('[name...]', 'who calls with it')
    .option('--role <role>', 'what it may do: viewer, worker, operator or admin')
    .option('--expires <instant>', 'until when it does')
    .action((names: string[], options: TokenOptions) => {
      const { now, out, err } = cli.surroundings;
      cli.exitCode = createToken(
        { names, ...options },
        {
          now: now(),
          print: (line) => out.write(`${line}\n`),
          explain: (line) => err.write(`${line}\n`),
        },
      );
    });
  withExamples(create, 'firelock token create ci --role operator --expires 2030-01-01T00:00:00Z');
}
