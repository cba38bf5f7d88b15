import { CliError, EXIT, usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { printable } from './display-width.ts';

interface Answered {
  yes?: true | undefined;
}

/** @throws CliError where there is no terminal to ask on, and no --yes */
export function requireAnswer({ input, err }: Surroundings, { yes }: Answered): void {
  if (!yes && !(input.isTerminal && err.isTerminal))
    throw usageError('this asks first, and there is no terminal to ask on: add --yes');
}

/**
 * Asks before what cannot be undone. Without a terminal there is no answer: there it takes --yes.
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
