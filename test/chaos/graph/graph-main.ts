/** `npm run chaos:graph`: one campaign of runs that depend on each other. test/chaos/README.md tells more. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runGraphCampaign } from './graph-campaign.ts';
import { graphPage, summarizeGraph } from './graph-report.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    seed: { type: 'string' },
    instances: { type: 'string', default: '3' },
    /** Seconds; 0: no kills. */
    'kill-every': { type: 'string', default: '5' },
    /** At most. */
    minutes: { type: 'string', default: '20' },
    /** Milliseconds for each run between two calls that ask for runs. */
    pace: { type: 'string', default: '4' },
    report: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..', '..', '..') },
    quiet: { type: 'boolean', default: false },
  },
});

// What is left running is ended on the way out.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const began = performance.now();
const killEvery = numberOf('kill-every', values['kill-every']);
const options = {
  seed: values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : numberOf('seed', values.seed),
  runs: numberOf('runs', values.runs),
  shape: 'mixed' as const,
  instances: numberOf('instances', values.instances),
  killEveryMs: killEvery === 0 ? Infinity : killEvery * 1000,
  paceMs: numberOf('pace', values.pace),
  limitSeconds: numberOf('minutes', values.minutes) * 60,
  root: values.root,
  say: (line: string): void => {
    if (!values.quiet)
      console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${line}`);
  },
};
options.say(`seed ${options.seed}`);
const summary = await summarizeGraph(options, await runGraphCampaign(options));
console.log(`\n${graphPage(summary)}`);
if (values.report !== undefined) await writeFile(values.report, `${JSON.stringify(summary, null, 2)}\n`);
process.exitCode = summary.ok ? 0 : 1;

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a number, not ${text}`);
  return value;
}
