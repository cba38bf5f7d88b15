import { CliError, EXIT, usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { printable } from './display-width.ts';

interface Answered {
  yes?: true | undefined;
}

/** @throws CliError where nobody can be asked, and --yes does not answer */
export function requireAnswer({ input, err }: Surroundings, { yes }: Answered): void {
  if (!yes && !(input.isTerminal && err.isTerminal))
    throw usageError('nobody can be asked here whether to do it: add --yes');
}

/**
 * Asks before what cannot be undone. Without a terminal nobody can answer: there it takes --yes.
 * @throws CliError where the answer is not yes, or cannot be asked for
 */
export async function confirm(
  surroundings: Surroundings,
  question: string,
  answered: Answered,
): Promise<void> {
  requireAnswer(surroundings, answered);
  if (answered.yes) return;
  const { input, err, signal } = surroundings;
  err.write(`${printable(question)} [y/N] `);
  const answer = await input.readLine();
  if (signal.aborted) throw new CliError(EXIT.interrupted, 'interrupted; nothing was changed');
  if (!/^\s*y(es)?\s*$/i.test(answer ?? '')) throw new CliError(EXIT.failed, 'nothing was changed');
}
