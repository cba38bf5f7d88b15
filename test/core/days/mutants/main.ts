/**
 * `npm run mutants:days`: breaks one step of the rule of days after the other, in a copy of the source, and says whether the test that is
 * to notice fails. `-- --only NAME` takes one of them.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DAY_MUTANTS, type DayMutant } from './day-mutants.ts';

const { values: options } = parseArgs({ options: { only: { type: 'string' } } });
const root = join(import.meta.dirname, '../../../..');
const chosen = DAY_MUTANTS.filter(({ name }) => options.only === undefined || name === options.only);
const survivors = chosen.filter((mutant) => !isCaught(mutant));
console.log(`${chosen.length - survivors.length} of ${chosen.length} were caught`);
if (survivors.length > 0 || chosen.length === 0) process.exitCode = 1;

function isCaught(mutant: DayMutant): boolean {
  const { name, file, find, replace, caughtBy } = mutant;
  const copy = mkdtempSync(join(tmpdir(), 'firelock-day-mutant-'));
  try {
    for (const part of ['src', 'test/core/days', 'package.json', 'tsconfig.json'])
      cpSync(join(root, part), join(copy, part), { recursive: true });
    // These tests need no database.
    writeFileSync(join(copy, 'vitest.config.ts'), "export default { test: { include: ['test/**/*.test.ts'] } };\n");
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    const before = runTest(copy, caughtBy);
    writeFileSync(
      join(copy, file),
      readFileSync(join(copy, file), 'utf8').replace(find, () => replace),
    );
    const after = runTest(copy, caughtBy);
    const caught = before === 'passed' && after === 'failed';
    console.log(`${caught ? 'caught  ' : 'SURVIVED'} ${name}: "${caughtBy.test}" ${before}, then ${after}`);
    return caught;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** The named test alone. */
function runTest(directory: string, { file, test }: DayMutant['caughtBy']): string {
  const escaped = `${test.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
  const report = join(directory, 'report.json');
  const how = ['--maxWorkers=1', '--reporter=json', `--outputFile=${report}`];
  spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', file, '-t', escaped, ...how], {
    cwd: directory,
    stdio: 'ignore',
    timeout: 120_000,
  });
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8')) as Record<string, number>;
  if (numFailedTests === 1) return 'failed';
  return numPassedTests === 1 ? 'passed' : `did not run alone (${numPassedTests} passed, ${numFailedTests} failed)`;
}
