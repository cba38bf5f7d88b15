/** `npm run chaos`: one fault campaign, or all mutants. See README.md beside this file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCampaign } from './campaign.ts';
import { runMutants } from './mutants/mutant-run.ts';
import { randomly } from './faults/nemesis.ts';
import { profileOf } from './profiles.ts';
import { page, summarize } from './report.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    schedules: { type: 'string' },
    instances: { type: 'string' },
    profile: { type: 'string', default: 'full' },
    report: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..', '..') },
    mutants: { type: 'boolean', default: false },
    control: { type: 'boolean', default: false },
    only: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
});

const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', values.seed);
// What is left running is ended on the way out.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const began = performance.now();
const say = (line: string): void => {
  if (!values.quiet) console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${line}`);
};

if (values.mutants || values.control || values.only !== undefined) {
  const { root, control, only = null } = values;
  const results = await runMutants({ root, seed, only, control, say });
  console.log(
    `${results.filter(({ ok }) => ok).length} of ${results.length} ${control ? 'quiet' : 'caught'}`,
  );
  await writeReport(results);
  process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;
} else {
  const profile = profileOf(values.profile);
  const options = {
    ...profile,
    seed,
    disturb: randomly({
      ...profile.nemesis,
      ...(values.minutes === undefined ? {} : { seconds: 60 * numberOf('minutes', values.minutes) }),
    }),
    schedules: values.schedules === undefined ? profile.schedules : numberOf('schedules', values.schedules),
    instances: values.instances === undefined ? profile.instances : numberOf('instances', values.instances),
    root: values.root,
    say,
  };
  say(`seed ${seed}`);
  const summary = await summarize(options, await runCampaign(options));
  console.log(`\n${page(summary)}`);
  await writeReport(summary);
  process.exitCode = summary.ok ? 0 : 1;
}

async function writeReport(content: unknown): Promise<void> {
  if (values.report !== undefined) await writeFile(values.report, `${JSON.stringify(content, null, 2)}\n`);
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a number, not ${text}`);
  return value;
}
