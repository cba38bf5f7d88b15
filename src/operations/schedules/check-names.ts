/**
 * Guarantees: the limit, the connection and the schedule that an edit names are there, and stay until it is written.
 * Transaction: that of the edit.
 * If the process dies here: nothing of the edit is written.
 */
import type { Transaction } from '../../postgres/executor.ts';
import { type UnknownName, heldFields, unknownNamesOf } from '../references.ts';
import { CannotFollow, resolveFollowed } from './followed-schedules.ts';
import type { NamingWrite } from './names-in-scope.ts';

export type CheckNames = (
  cannotFollow: CannotFollow | null,
  unknown: readonly UnknownName<{ id: string }>[],
) => void;

/** @throws CannotFollow, Error where a limit or a connection does not exist, or a held field is changed, and whatever `check` throws */
export async function checkNames(
  tx: Transaction,
  writes: readonly NamingWrite[],
  check: CheckNames,
): Promise<void> {
  // All are of one caller.
  const scope = writes[0]?.scope ?? null;
  const namingOf = ({ write }: NamingWrite) => write.definition;
  const found = await unknownNamesOf(tx, writes, namingOf, scope, ({ before }) => before);
  const held = writes.flatMap(({ write, before }) =>
    heldFields(write.definition.target, before?.target ?? null, scope).map(({ field, message }) => ({
      ...{ namer: write, path: `/target/${field}`, message },
    })),
  );
  const unknown = [...found.map(({ namer, ...rest }) => ({ ...rest, namer: namer.write })), ...held];
  await resolveFollowed(tx, writes).catch((error: unknown) => {
    if (error instanceof CannotFollow) check(error, unknown);
    throw error;
  });
  check(null, unknown);
  const [first] = unknown;
  if (first) throw new Error(`schedule ${first.namer.id} ${first.message}`);
}
