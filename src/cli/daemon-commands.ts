import type { Command } from 'commander';
import type { Cli } from './cli.ts';
import { createTokenCommand } from './token-command.ts';
import { group, withExamples } from './tree.ts';

/** The commands that start the daemon, or work on its database without its API. */
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
    .option('--grant-to <role>', 'let this role of the database do what the daemon does (docs/security.md)')
    .action(async (options: { grantTo?: string }) => {
      const { migrateDatabase } = await import('./migrate-command.ts');
      const grantTo = options.grantTo ?? null;
      cli.exitCode = await daemon.onDatabase((given) => migrateDatabase({ ...given, grantTo }));
    });
  const asOwner = 'FIRELOCK_MIGRATION_DATABASE_URL=postgres://owner@127.0.0.1/firelock firelock migrate';
  withExamples(migrate, asOwner, `${asOwner} --grant-to firelock_app`);
  addRotateSecrets(program, cli);
  addTokenCommands(program, cli);
}

function addRotateSecrets(program: Command, cli: Cli): void {
  const rotate = program
    .command('rotate-secrets')
    .description(
      'encrypt stored header values and secrets anew with the first of FIRELOCK_SECRET_KEYS (docs/security.md)',
    )
    .action(async () => {
      const { rotateSecretsCommand } = await import('./rotate-secrets-command.ts');
      cli.exitCode = await cli.surroundings.daemon.onDatabase(rotateSecretsCommand);
    });
  withExamples(rotate, 'FIRELOCK_SECRET_KEYS=k2:…,k1:… firelock rotate-secrets');
}

interface TokenOptions {
  role?: string;
  expires?: string;
}

function addTokenCommands(program: Command, cli: Cli): void {
  const token = group(program, 'token', 'tokens of callers of the API');
  const create = token
    .command('create')
    .description('make a token; prints it, and the line that the daemon needs (docs/security.md)')
    .argument('[name...]', 'who calls with it')
    .option('--role <role>', 'what it may do: viewer, worker, operator or admin')
    .option('--expires <instant>', 'until when it does')
    .action((names: string[], options: TokenOptions) => {
      const { now, out, err } = cli.surroundings;
      cli.exitCode = createTokenCommand(
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
