import { CliError, EXIT, usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { printable } from './shown-text.ts';

interface Answered {
  yes?: true | undefined;
}

/** @throws CliError if there is no terminal to ask on, and no --yes */
export function requireAnswer({ input, err }: Surroundings, { yes }: Answered): void {
  if (!yes && !(input.isTerminal && err.isTerminal))
    throw usageError('this asks first, and there is no terminal to ask on: add --yes');
}

/**
 * Asks before an action that cannot be undone. Without a terminal it needs --yes.
 * @throws CliError if the answer is not yes, or the question cannot be asked
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
