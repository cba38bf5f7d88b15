/** `npm run failover`: the primary moves from node to node under load. test/chaos/failover/README.md tells more. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { beginCommand, numberOf, seedOf, writeReport } from '../command.ts';
import { KINDS_OF, runFailovers } from './failover-campaign.ts';
import { failoverPage } from './failover-report.ts';
import { KINDS, type Kind } from './failovers.ts';
import { findPrograms, HOW_TO_INSTALL } from './patroni-cluster.ts';

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: 'haproxy' },
    replication: { type: 'string', default: 'sync' },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string' },
    schedules: { type: 'string', default: '200' },
    kinds: { type: 'string' },
    'lag-seconds': { type: 'string', default: '3' },
    report: { type: 'string' },
    root: { type: 'string', default: join(import.meta.dirname, '..', '..', '..') },
  },
});

const programs = findPrograms();
if ('missing' in programs) {
  console.error(`missing: ${programs.missing.join(', ')}. ${HOW_TO_INSTALL}`);
  process.exitCode = 2;
} else {
  const replication = oneOf('replication', values.replication, ['sync', 'async'] as const);
  const report = await runFailovers({
    programs,
    mode: oneOf('mode', values.mode, ['haproxy', 'hosts'] as const),
    replication,
    minutes: numberOf('minutes', values.minutes),
    seed: seedOf(values.seed),
    schedules: numberOf('schedules', values.schedules),
    kinds: values.kinds?.split(',').map((kind): Kind => oneOf('kinds', kind, KINDS)) ?? KINDS_OF[replication],
    lagSeconds: numberOf('lag-seconds', values['lag-seconds']),
    root: values.root,
    say: beginCommand(),
  });
  console.log(`\n${failoverPage(report)}`);
  await writeReport(values.report, report);
  process.exitCode = report.ok ? 0 : 1;
}

function oneOf<Value extends string>(name: string, text: string, known: readonly Value[]): Value {
  const found = known.find((value) => value === text);
  if (found === undefined) throw new Error(`--${name} must be one of ${known.join(', ')}, not ${text}`);
  return found;
}
