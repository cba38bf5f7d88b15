/**
 * Runs all checks that there are, one after the other: a night, or before a release. CONTRIBUTING.md says what is what.
 *
 *     npm run verify:all -- [--only=NAME,NAME] [--report=FILE] [--list]
 *
 * Where this machine lacks what one needs, that one is skipped, with the reason. FILE gets the counts and what became of each. `--list`
 * only names them, and what they need. `.ci/run` calls this with `--ci` and what it has done before, for the checks of every change:
 * there nothing may lack.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { countsOf, failuresOf, listOf, tableOf } from './report.ts';
import { type Outcome, type Step, runSteps } from './run-steps.ts';
import { ALL_STEPS, CI_STEPS } from './steps.ts';

const { values } = parseArgs({
  options: {
    ci: { type: 'boolean', default: false },
    /** `SECONDS STATUS NAME` of a step that was done before. */
    before: { type: 'string', multiple: true, default: [] },
    only: { type: 'string' },
    report: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
});

const steps = chosen(values.ci ? CI_STEPS : ALL_STEPS, values.only);
if (values.list) console.log(listOf(steps));
else await run();

async function run(): Promise<void> {
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      interruption.abort();
    });
  const outcomes = [
    ...values.before.map(readBefore),
    ...(await runSteps(steps, {
      nothingMayLack: values.ci,
      say: (text) => process.stdout.write(text),
      signal: interruption.signal,
    })),
  ];
  const { aborted } = interruption.signal;
  const counts = countsOf(outcomes, aborted);
  console.log(`\n${failuresOf(outcomes)}\n${tableOf(outcomes)}`);
  if (aborted) console.log('Interrupted.');
  if (values.report !== undefined)
    writeFileSync(values.report, `${JSON.stringify({ ...counts, steps: outcomes }, null, 2)}\n`);
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  if (counts.failed > 0) process.exitCode = 1;
}

function chosen(all: readonly Step[], only: string | undefined): Step[] {
  const names = only?.split(',') ?? all.map(({ name }) => name);
  const unknown = names.filter((name) => !all.some((step) => step.name === name));
  if (unknown.length > 0) throw new Error(`no step ${unknown.join(', ')}; there are:\n${listOf(all)}`);
  return all.filter(({ name }) => names.includes(name));
}

function readBefore(text: string): Outcome {
  const [seconds, status, ...words] = text.split(' ');
  const isFailed = status !== '0';
  return {
    name: words.join(' '),
    seconds: Number(seconds),
    result: isFailed ? 'failed' : 'passed',
    passed: 0,
    failed: isFailed ? 1 : 0,
    why: isFailed ? `it ended with status ${String(status)}; see above` : '',
  };
}
