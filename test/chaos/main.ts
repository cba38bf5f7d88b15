/** `npm run chaos`: one fault campaign, or all mutants. See README.md beside this file. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCampaign } from './campaign.ts';
import { beginCommand, numberOf, seedOf, writeReport } from './command.ts';
import { runMutants } from './mutants/mutant-run.ts';
import { randomly } from './faults/faults.ts';
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

const seed = seedOf(values.seed);
const say = beginCommand(values.quiet);

if (values.mutants || values.control || values.only !== undefined) {
  const { root, control, only = null } = values;
  const results = await runMutants({ root, seed, only, control, say });
  console.log(`${results.filter(({ ok }) => ok).length} of ${results.length} ${control ? 'quiet' : 'caught'}`);
  await writeReport(values.report, results);
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
  await writeReport(values.report, summary);
  process.exitCode = summary.ok ? 0 : 1;
}
