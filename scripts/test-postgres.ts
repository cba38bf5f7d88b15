/**
 * The tests on other major versions of PostgreSQL, one after the other, each on a throw-away server of a package from
 * npm. What brings a server of its own (the embedded one, servers that are crashed) stays on that.
 *
 *     npm run test:postgres -- [14 15 16 17] [--report=FILE] [-- arguments of vitest]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packagedMajors } from './support/postgres-packages.ts';
import { startPostgres } from './support/postgres-server.ts';

const root = join(import.meta.dirname, '..');

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const { majors, report, vitestArguments } = readArguments(process.argv.slice(2));
const results: [string, Counts][] = [];
const interruption = new AbortController();
for (const major of majors) if (!interruption.signal.aborted) results.push(await testOn(major, vitestArguments));
for (const [version, { passed, failed, skipped }] of results) {
  console.log(`PostgreSQL ${version}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
}
const sum = (of: keyof Counts) => results.reduce((total, [, counts]) => total + counts[of], 0);
if (report !== undefined) {
  await writeFile(report, `${JSON.stringify({ passed: sum('passed'), failed: sum('failed') })}\n`);
}
process.exitCode = interruption.signal.aborted || sum('failed') > 0 ? 1 : 0;

function readArguments(args: readonly string[]): {
  majors: number[];
  report: string | undefined;
  vitestArguments: string[];
} {
  const end = args.includes('--') ? args.indexOf('--') : args.length;
  const { values, positionals } = parseArgs({
    args: args.slice(0, end),
    options: { report: { type: 'string' } },
    allowPositionals: true,
  });
  const known = packagedMajors();
  const majors = positionals.length > 0 ? positionals.map(Number) : known.slice(0, -1);
  const unknown = positionals.filter((_, index) => !known.includes(majors[index] ?? NaN));
  if (unknown.length > 0) {
    throw new Error(`no PostgreSQL ${unknown.join(', ')} is known here; there are ${known.join(', ')}`);
  }
  return { majors, report: values.report, vitestArguments: args.slice(end + 1) };
}

/** A version that cannot be had, or whose tests do not come to an end, counts as one failed test. */
async function testOn(major: number, args: readonly string[]): Promise<[string, Counts]> {
  try {
    const server = await startPostgres(major, { from: 'packaged', durable: false });
    try {
      console.log(`\n== PostgreSQL ${server.version}`);
      return [server.version, await vitest(server.url, args)];
    } finally {
      await server.stop();
    }
  } catch (error) {
    console.error(error);
    return [String(major), { passed: 0, failed: 1, skipped: 0 }];
  }
}

async function vitest(url: string, args: readonly string[]): Promise<Counts> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-report-'));
  const file = join(directory, 'report.json');
  const program = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  try {
    const child = spawn(process.execPath, [program, 'run', ...reporters, ...args], {
      cwd: root,
      env: { ...process.env, FIRELOCK_TEST_DATABASE_URL: url },
      stdio: 'inherit',
    });
    // From a terminal the tests hear of it themselves; the server must outlive them.
    const handlers = (['SIGINT', 'SIGTERM'] as const).map((signal) => {
      const pass = () => {
        interruption.abort();
        child.kill(signal);
      };
      process.on(signal, pass);
      return () => process.off(signal, pass);
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    for (const remove of handlers) remove();
    return countsOf(await readFile(file, 'utf8'), code);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function countsOf(json: string, code: number | null): Counts {
  const report = JSON.parse(json) as Record<
    'numPassedTests' | 'numFailedTests' | 'numPendingTests' | 'numTodoTests',
    number
  >;
  // A file that cannot be loaded fails without a failed test in it.
  const failed = Math.max(report.numFailedTests, code === 0 ? 0 : 1);
  return { passed: report.numPassedTests, failed, skipped: report.numPendingTests + report.numTodoTests };
}
