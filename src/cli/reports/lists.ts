import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import type { InstanceAnswer, Page, QueueAnswer } from '../server/answers.ts';
import type { View } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';
import { durationText } from '../terminal/time-text.ts';

export function addQueueCommands(program: Command, cli: Cli): void {
  const queue = group(program, 'queue', 'queues that workers pull from');
  addWholeList<QueueAnswer>(queue, cli, {
    path: 'queues',
    description: 'list queues: what waits in them, and how many workers ask',
    columns: () => [
      { title: 'QUEUE', cell: ({ queue }) => queue, shrinks: true },
      { title: 'PENDING', cell: ({ pending }) => pending, align: 'right' },
      { title: 'LATER', cell: ({ scheduled }) => scheduled, align: 'right' },
      { title: 'RUNNING', cell: ({ running }) => running, align: 'right' },
      {
        title: 'OLDEST',
        cell: ({ oldestPendingSeconds: seconds }) => (seconds === 0 ? null : durationText(seconds * 1000)),
        align: 'right',
      },
      { title: 'WORKERS', cell: ({ workers }) => workers, align: 'right' },
    ],
  });
}

export function addInstanceCommands(program: Command, cli: Cli): void {
  const instance = group(program, 'instance', 'instances: the daemon processes');
  addWholeList<InstanceAnswer>(instance, cli, {
    path: 'instances',
    description: 'list instances, the newest first; the dead stay listed for a day',
    columns: ({ cellTime, paint }) => [
      { title: 'ID', cell: ({ id }) => id },
      { title: 'HOST', cell: ({ host }) => host, shrinks: true },
      {
        title: 'ALIVE',
        cell: ({ alive }) => (alive ? 'yes' : 'no'),
        paint: (text) => paintAlive(text, paint),
      },
      { title: 'IN FLIGHT', cell: ({ inFlight }) => inFlight, align: 'right' },
      { title: 'VERSION', cell: ({ version }) => version, mayGo: true },
      { title: 'ZONE DATA', cell: ({ zoneData }) => zoneData, isExtra: true },
      { title: 'STARTED', cell: ({ startedAt }) => cellTime(startedAt), isExtra: true },
      { title: 'HEARTBEAT', cell: ({ heartbeatAt }) => cellTime(heartbeatAt) },
    ],
  });
}

function paintAlive(text: string, paint: View['paint']): string {
  return paint(text === 'yes' ? 'green' : 'red', text);
}

interface WholeList<Row> {
  path: string;
  description: string;
  columns: (view: View) => Column<Row>[];
}

/** For a list that comes in one page. */
function addWholeList<Row>(parent: Command, cli: Cli, { path, description, columns }: WholeList<Row>): void {
  const command = parent
    .command('list')
    .description(description)
    .action(async () => {
      const answer = await cli.server().call('GET', path);
      const { items } = answer.body() as Page<Row>;
      cli.output().show(answer.text, (view) => [...view.table(columns(view), items), view.zoneNote]);
    });
  withExamples(command, `firelock ${parent.name()} list`);
}
