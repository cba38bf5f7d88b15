import type { Command } from 'commander';
import { type Cli, group, withExamples } from '../cli.ts';
import { jsonIn } from '../common/arguments.ts';
import type { BatchAnswer, RunAnswer, SubmittedAnswer } from '../server/answers.ts';
import { pathOf } from '../server/server-calls.ts';
import { paintStatus } from '../terminal/paint.ts';

export function addSubmitRuns(parent: Command, cli: Cli): void {
  const command = parent
    .command('submit')
    .description('have something done once: a run of no schedule, or many that depend on each other')
    .requiredOption(
      '--file <file>',
      'JSON, as POST /runs takes it, or with items as POST /runs/batch (-: standard input)',
    )
    .action(async ({ file }: { file: string }) => {
      const body = await jsonIn(file, cli.surroundings);
      const sent: unknown = JSON.parse(body.text);
      const isBatch = typeof sent === 'object' && sent !== null && 'items' in sent;
      const call = cli.server().call('POST', isBatch ? 'runs/batch' : 'runs', { body });
      await cli.show(call, (answer: RunAnswer | SubmittedAnswer) =>
        'batchId' in answer && 'items' in answer
          ? submittedLines(answer)
          : [`run ${answer.id} is ${answer.status}`],
      );
    });
  withExamples(
    command,
    'firelock run submit --file etl.json',
    'echo \'{"target": {"type": "pull", "queue": "reports"}}\' | firelock run submit --file -',
  );
}

function submittedLines({ batchId, items }: SubmittedAnswer): string[] {
  return [`batch ${batchId ?? 'none'}: ${items.length} runs`, ...items.map(({ ref, id }) => `${ref} ${id}`)];
}

export function addBatchCommands(program: Command, cli: Cli): void {
  const batch = group(program, 'batch', 'runs that were submitted together');
  const command = batch
    .command('get')
    .description('show the runs of a batch, how each stands, and what it waits for')
    .argument('<id>')
    .action((id: string) =>
      cli.show(cli.server().call('GET', pathOf('batches', id)), (found: BatchAnswer, view) => [
        ...view.pairs([
          ['id', found.id],
          ['name', found.name],
          ['labels', labelsText(found.labels)],
          ['created', view.time(found.createdAt)],
        ]),
        ...view.table(
          [
            { title: 'REF', cell: ({ ref }) => ref },
            { title: 'STATUS', cell: ({ status }) => status, paint: paintStatus },
            { title: 'RUN', cell: ({ id: run }) => run },
            { title: 'DEPENDS ON', cell: ({ dependsOn }) => dependsOn.join(', '), shrinks: true },
          ],
          found.items,
        ),
        view.zones,
      ]),
    );
  withExamples(command, 'firelock batch get 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60');
}

/** Null: there are none. */
export function labelsText(labels: Readonly<Record<string, string>>): string | null {
  const all = Object.entries(labels).map(([key, value]) => `${key}:${value}`);
  return all.length === 0 ? null : all.join(', ');
}
