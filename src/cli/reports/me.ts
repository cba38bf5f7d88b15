import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import type { CallerAnswer } from '../server/answers.ts';

export function addMe(program: Command, cli: Cli): void {
  const command = program
    .command('me')
    .description('who the server takes you for, and what you may do')
    .action(async () => {
      const server = cli.server();
      const answer = await server.call('GET', 'me');
      const { name, role } = answer.body() as CallerAnswer;
      cli
        .output()
        .show(answer.text, () => [
          `${name ?? 'anonymous (no token is asked for)'}, ${role}, at ${server.url}`,
        ]);
    });
  withExamples(command, 'FIRELOCK_URL=https://cron.example.com firelock me');
}
