import type { Command } from 'commander';
import { type Cli, withExamples } from './cli.ts';
import { EXIT } from './exit-codes.ts';
import type { VerifyAnswer } from './server/answers.ts';

type Check = VerifyAnswer['checks'][number];

export function addVerifyCommand(program: Command, cli: Cli): void {
  const command = program
    .command('verify')
    .description(
      'check on the live database what must always hold; exit code 1: something does not, or is not known',
    )
    .action(async () => {
      const answer = await cli.server().call('GET', 'verify');
      const { ok, checks } = answer.body() as VerifyAnswer;
      cli.output().show(answer.text, (view) => [
        ...view.table<Check>(
          [
            { title: 'CHECK', cell: ({ name }) => name },
            {
              title: 'VIOLATIONS',
              cell: countOf,
              align: 'right',
              paint: (text, paint) => (text === '0' ? text : paint('red', text)),
            },
            { title: 'WHAT HOLDS', cell: ({ holds }) => holds, shrinks: true },
          ],
          checks,
        ),
        ...checks.flatMap(({ name, examples }) => examples.map((example) => `${name}: ${example}`)),
      ]);
      cli.exitCode = ok ? EXIT.done : EXIT.failed;
    });
  withExamples(command, 'firelock verify', 'firelock verify --json | jq -e .ok');
}

function countOf({ complete, violations }: Check): string {
  return complete ? String(violations) : 'not known';
}
