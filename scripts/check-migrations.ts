/**
 * Fails when src/postgres/schema.ts and the committed migrations differ: drizzle-kit is asked for the next migration
 * beside a copy of drizzle/, and must have none. Needs neither a database nor a network.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import config from '../drizzle.config.ts';
import { readMigrations } from '../src/postgres/migrations/read-migrations.ts';
import { misplacedStatements } from './support/misplaced-statements.ts';

const root = join(import.meta.dirname, '..');
const scratch = mkdtempSync(join(tmpdir(), 'firelock-migrations-'));
const copy = join(scratch, 'drizzle');
const configFile = join(scratch, 'drizzle.config.json');
const advice = 'The schema and drizzle/ differ. Run `npm run migration` and commit what it writes.';

try {
  cpSync(join(root, 'drizzle'), copy, { recursive: true });
  // drizzle-kit takes `out` relative to its working directory only.
  writeFileSync(configFile, JSON.stringify({ ...config, out: relative(root, copy) }));
  const complaint = strayFiles() ?? wrongPlace() ?? inconsistency() ?? nextMigration();
  if (complaint !== undefined) {
    console.error(complaint);
    process.exitCode = 1;
  } else {
    console.log('The migrations in drizzle/ are up to date with the schema.');
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** What drizzle-kit does not look at: a file that no journal entry names, and an entry whose file is gone. */
function strayFiles(): string | undefined {
  const journalFile = join(copy, 'meta', '_journal.json');
  if (!existsSync(journalFile)) return 'drizzle/ has no meta/_journal.json. Run `npm run migration`.';
  const journal = JSON.parse(readFileSync(journalFile, 'utf8')) as { entries: { tag: string }[] };
  const named = journal.entries.map((entry) => `${entry.tag}.sql`);
  const present = sqlFiles();
  const faults = [
    ...named.filter((file) => !present.includes(file)).map((file) => `${file} is only in the journal`),
    ...present.filter((file) => !named.includes(file)).map((file) => `${file} is not in the journal`),
  ];
  return faults.length === 0 ? undefined : `drizzle/: ${faults.join('; ')}.`;
}

function wrongPlace(): string | undefined {
  const faults = misplacedStatements(readMigrations(copy));
  if (faults.length === 0) return undefined;
  return ['These statements stand in the wrong kind of migration (CONTRIBUTING.md, "A migration"):', ...faults].join(
    '\n',
  );
}

/** Two migrations that grew from the same snapshot, as when two branches meet. */
function inconsistency(): string | undefined {
  const { status, output } = drizzleKit('check');
  return status === 0 ? undefined : `drizzle-kit check does not accept drizzle/:\n${output}`;
}

/**
 * drizzle-kit exits 0 after some errors, and fails where it would have to ask whether a column was renamed. So only
 * its own word that nothing changed, and no new file, counts as a pass.
 */
function nextMigration(): string | undefined {
  const before = sqlFiles();
  const { status, output } = drizzleKit('generate');
  const added = sqlFiles().filter((file) => !before.includes(file));
  if (status === 0 && added.length === 0 && output.includes('No schema changes')) return undefined;
  if (added.length === 0) return `${advice} drizzle-kit generate did not finish:\n${output}`;
  return [advice, ...added.map((file) => readFileSync(join(copy, file), 'utf8'))].join('\n');
}

function sqlFiles(): string[] {
  return readdirSync(copy).filter((name) => /^\d{4}_.*\.sql$/.test(name));
}

function drizzleKit(command: 'check' | 'generate'): { status: number | null; output: string } {
  const bin = join(root, 'node_modules', 'drizzle-kit', 'bin.cjs');
  const child = spawnSync(process.execPath, [bin, command, '--config', relative(root, configFile)], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  return { status: child.status, output: `${child.stdout}${child.stderr}`.trim() };
}
