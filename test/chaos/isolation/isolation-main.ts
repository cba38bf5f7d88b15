/** `npm run chaos:isolation`: how late the fires of others are while one user burdens the daemons. test/chaos/README.md tells more. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { beginCommand, writeReport } from '../command.ts';
import { BURDENS } from './burdens.ts';
import { isolationPage, runIsolation } from './isolation-campaign.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    /** Of each measured period. */
    seconds: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '3' },
    /** Of the burdens' sizes. */
    scale: { type: 'string', default: '1' },
    report: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..', '..', '..') },
  },
});

const names = values.only?.split(',') ?? BURDENS.map(({ name }) => name);
const unknown = names.filter((name) => !BURDENS.some((burden) => burden.name === name));
if (unknown.length > 0)
  throw new Error(`no burden ${unknown.join(', ')}; there are ${BURDENS.map(({ name }) => name).join(', ')}`);

const results = await runIsolation({
  burdens: BURDENS.filter(({ name }) => names.includes(name)),
  seconds: Number(values.seconds),
  rounds: Number(values.rounds),
  scale: Number(values.scale),
  root: values.root,
  say: beginCommand(),
});
console.log(`\n${isolationPage(results)}`);
await writeReport(values.report, results);
// Not by itself: as it leaves, Node waits for ever for a handle of its own (Environment::CleanupHandles).
process.exit(results.every(({ ok }) => ok) ? 0 : 1);
