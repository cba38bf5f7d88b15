import { randomBytes, randomInt } from 'node:crypto';
import type { Command } from 'commander';
import { ROLES, TOKEN_NAME_RULE, isRole, isTokenName } from '../core/access/roles.ts';
import { parseScope, SCOPE_RULE } from '../core/access/scope.ts';
import { createToken, EXPIRY_RULE, parseExpiry, tokenHash, tokenLine } from '../core/access/token.ts';
import { SECRET_KEY_BYTES } from '../core/secrets/key-ring.ts';
import { type Cli, group, withExamples } from './cli.ts';
import { collect } from './common/arguments.ts';
import { EXIT } from './exit-codes.ts';
import type { Surroundings } from './surroundings.ts';

/** The commands that start the daemon, or work on its database without its API. */
export function addDaemonCommands(program: Command, cli: Cli): void {
  const { daemon } = cli.surroundings;
  const serve = program
    .command('serve')
    .alias('start')
    .description('start the daemon, as firelock without a command does; it is configured by the environment')
    .action(async () => void (cli.exitCode = await daemon.serve()));
  withExamples(serve, 'DATABASE_URL=postgres://firelock@127.0.0.1/firelock firelock serve');
  const resume = program
    .command('resume')
    .description(
      'after a restored backup or a failover that lost data, with every instance stopped: skip what was due before now; ' +
        'after the clock of the database was ahead, also while instances run: plan from now on',
    )
    .requiredOption('--from-now', 'from which moment on fires are made (docs/restoring.md)')
    .action(async () => {
      const { resume } = await import('./database-commands.ts');
      cli.exitCode = await daemon.onDatabase(resume);
    });
  withExamples(resume, 'firelock resume --from-now');
  addObserve(program, cli);
  const migrate = program
    .command('migrate')
    .description('bring the schema of the database up to this version, as the daemon does at its start')
    .option('--grant-to <role>', 'give this role of the database the rights that the daemon needs (docs/database.md)')
    .action(async ({ grantTo }: { grantTo?: string }) => {
      const { migrateDatabase } = await import('./database-commands.ts');
      cli.exitCode = await daemon.onDatabase((given) => migrateDatabase(given, grantTo));
    });
  const asOwner = 'FIRELOCK_MIGRATION_DATABASE_URL=postgres://owner@127.0.0.1/firelock firelock migrate';
  withExamples(migrate, asOwner, `${asOwner} --grant-to firelock_app`);
  addRotateSecrets(program, cli);
  addDatabase(program, cli);
  addTokenCommands(program, cli);
  addSetup(program, cli);
}

function addObserve(program: Command, cli: Cli): void {
  const observe = program
    .command('observe')
    .description('on a restored database, with every instance stopped: let them only observe, until a take-over')
    .option('--reason <text>', 'the reason, which is shown with it')
    .action(async ({ reason }: { reason?: string }) => {
      const { observeOnly } = await import('./database-commands.ts');
      cli.exitCode = await cli.surroundings.daemon.onDatabase((given) => observeOnly(given, reason ?? null));
    });
  withExamples(observe, 'firelock observe --reason "a copy for the restore drill"');
}

function addRotateSecrets(program: Command, cli: Cli): void {
  const rotate = program
    .command('rotate-secrets')
    .description(
      'encrypt stored header values and secrets anew with the first of FIRELOCK_SECRET_KEYS (docs/secrets.md)',
    )
    .action(async () => {
      const { rotate } = await import('./database-commands.ts');
      cli.exitCode = await cli.surroundings.daemon.onDatabase(rotate);
    });
  withExamples(rotate, 'FIRELOCK_SECRET_KEYS=k2:…,k1:… firelock rotate-secrets');
}

function addDatabase(program: Command, cli: Cli): void {
  const { daemon, version } = cli.surroundings;
  const database = group(program, 'database', 'the database of the daemon: dump it, restore it, or use it by its URL');
  const dump = database
    .command('dump')
    .description(
      'write everything that firelock has stored into a file, while instances work; needs no pg_dump, and any PostgreSQL takes it (docs/restoring.md)',
    )
    .argument('<file>', 'a file that does not exist')
    .action(async (file: string) => {
      const { dump } = await import('./database-commands.ts');
      cli.exitCode = await daemon.onDatabase((given) => dump(given, file, version));
    });
  withExamples(dump, 'firelock database dump firelock.dump');
  const restore = database
    .command('restore')
    .description('read such a file into a database that no instance has used: all of it, or nothing')
    .argument('<file>', 'what firelock database dump wrote')
    .action(async (file: string) => {
      const { restore } = await import('./database-commands.ts');
      cli.exitCode = await daemon.onDatabase((given) => restore(given, file));
    });
  withExamples(restore, 'DATABASE_URL=postgres://firelock@127.0.0.1/firelock firelock database restore firelock.dump');
  addDatabaseUrl(database, cli);
}

/** The embedded PostgreSQL chooses its port and makes its password by itself. */
function addDatabaseUrl(database: Command, cli: Cli): void {
  const url = database
    .command('url')
    .description('print its URL with the password, for psql; the embedded PostgreSQL answers while a daemon runs')
    .action(async () => {
      cli.exitCode = await cli.surroundings.daemon.onDatabase(({ databaseUrl, print }) => {
        print(databaseUrl);
        return Promise.resolve(EXIT.done);
      });
    });
  withExamples(url, 'psql "$(firelock database url)"');
}

interface TokenOptions {
  role?: string;
  scope: readonly string[];
  expires?: string;
}

function addTokenCommands(program: Command, cli: Cli): void {
  const create = group(program, 'token', 'tokens of callers of the API')
    .command('create')
    .description('make a token; prints it, and the line that the daemon needs (docs/security.md)')
    .argument('[name...]', 'who calls with it')
    .option('--role <role>', 'what it may do: viewer, worker, operator or admin')
    .option(
      '--scope <prefix>',
      'see and change only names that begin with this; may be given again',
      collect,
      [] as string[],
    )
    .option('--expires <instant>', 'until when it does')
    .action((names: string[], options: TokenOptions) => {
      cli.exitCode = makeToken(names, options, cli.surroundings);
    });
  withExamples(
    create,
    'firelock token create ci --role operator --expires 2030-01-01T00:00:00Z',
    'firelock token create billing-ci --role admin --scope billing.',
  );
}

/** Prints the variables, and nothing else on standard output: it goes into the file that an installation reads. */
function addSetup(program: Command, { surroundings: { out, err } }: Cli): void {
  const setup = program
    .command('setup')
    .description(
      'begin an installation: print its variables, with a new token of an admin and a key for secrets, and the token itself on standard error',
    )
    .action(() => {
      const token = createToken((end) => randomInt(end));
      const admin = { name: 'admin', role: 'admin', scope: null, expiresAt: null } as const;
      err.write(`The token of the admin, which is shown only now:\n${token}\n`);
      out.write(`FIRELOCK_API_TOKENS=${tokenLine({ ...admin, hash: tokenHash(token) })}\n`);
      out.write(`FIRELOCK_SECRET_KEYS=k1:${randomBytes(SECRET_KEY_BYTES).toString('base64')}\n`);
    });
  withExamples(setup, 'firelock setup > .env');
}

/** Prints the token, then its line, and nothing else on standard output. Neither is kept anywhere. */
function makeToken(names: readonly string[], options: TokenOptions, { now, out, err }: Surroundings): number {
  const read = readArguments(names, options, now());
  if ('faults' in read) {
    for (const fault of read.faults) err.write(`firelock token create: ${fault}\n`);
    return EXIT.usage;
  }
  const token = createToken((end) => randomInt(end));
  err.write('The token, which is shown only now, and its line for FIRELOCK_API_TOKENS or the file\n');
  err.write('FIRELOCK_API_TOKENS_FILE:\n');
  out.write(`${token}\n`);
  out.write(`${tokenLine({ ...read, hash: tokenHash(token) })}\n`);
  return EXIT.done;
}

function readArguments([name = '', ...others]: readonly string[], options: TokenOptions, now: number) {
  const { role = '', expires } = options;
  const expiresAt = expires === undefined ? null : parseExpiry(expires);
  const scope = options.scope.length === 0 ? null : parseScope(options.scope.join('|'));
  const faults: string[] = [];
  if (!isTokenName(name)) faults.push(`NAME must be ${TOKEN_NAME_RULE}`);
  if (others.length > 0) faults.push(`give only one NAME, not also ${others.join(' ')}`);
  if (!isRole(role)) faults.push(`--role must be one of ${ROLES.join(', ')}`);
  if (options.scope.length > 0 && scope === null) faults.push(`--scope must give ${SCOPE_RULE}`);
  if (expiresAt === undefined) faults.push(`--expires must be ${EXPIRY_RULE}`);
  else if (expiresAt !== null && expiresAt <= now) faults.push('--expires must be in the future');
  if (faults.length > 0 || !isRole(role) || expiresAt === undefined) return { faults };
  return { name, role, scope, expiresAt };
}
