import { CliError, EXIT, usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';
import { printable } from './display-width.ts';

/**
 * Asks before what cannot be undone. Without a terminal nobody can answer: there it takes --yes.
 * @throws CliError where the answer is not yes, or cannot be asked for
 */
export async function confirm(
  { input, err, signal }: Surroundings,
  question: string,
  { yes }: { yes?: true | undefined },
): Promise<void> {
  if (yes) return;
  if (!input.isTerminal || !err.isTerminal)
    throw usageError('nobody can be asked here whether to do it: add --yes');
  err.write(`${printable(question)} [y/N] `);
  const answer = await input.readLine();
  if (signal.aborted) throw new CliError(EXIT.interrupted, 'interrupted; nothing was changed');
  if (!/^\s*y(es)?\s*$/i.test(answer ?? '')) throw new CliError(EXIT.failed, 'nothing was changed');
}
