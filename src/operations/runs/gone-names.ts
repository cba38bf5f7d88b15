/**
 * Guarantees: no one-off run is opened again whose limit or connection is gone, or whose own header values would go elsewhere now.
 * Transaction: the caller's; what exists stays until it ends.
 * If the process dies here: nothing of the caller's transaction is written.
 */
import { connectionOfLane } from '../../core/connections/connection.ts';
import type { Decision } from '../../core/runs/run-decisions.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { hasSecrets } from '../../core/secrets/target-secrets.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { keepNamed, keepPlaced } from '../../store/names/named-rows.ts';
import { loadHandoffs, versionKey } from '../../store/schedules/load-handoffs.ts';

/**
 * A one-off run keeps its limit and its connection, which may have been deleted since the run ended, or moved: then what
 * the run itself would send is not sent there. Answers what is gone, by run. What exists stays until the action is done.
 */
export async function goneNamesOf(
  tx: Transaction,
  runs: readonly RunRecord[],
): Promise<ReadonlyMap<string, string>> {
  const gone = new Map<string, string>();
  const oneOffs = runs.filter(({ scheduleId }) => scheduleId === '');
  const limits = await keepNamed(
    tx,
    'limits',
    oneOffs.flatMap(({ limitId }) => limitId ?? []),
  );
  for (const { id, limitId } of oneOffs)
    if (limitId !== null && !limits.has(limitId))
      gone.set(id, `the limit of the run was deleted: ${limitId}`);
  await addGoneConnections(tx, oneOffs, gone);
  return gone;
}

async function addGoneConnections(
  tx: Transaction,
  oneOffs: readonly RunRecord[],
  gone: Map<string, string>,
): Promise<void> {
  const connected = oneOffs.flatMap((run) => {
    const connection = connectionOfLane(run.lane);
    return connection === null ? [] : [{ run, connection }];
  });
  if (connected.length === 0) return;
  const placed = await keepPlaced(
    tx,
    connected.map(({ connection }) => connection),
  );
  for (const { run, connection } of connected)
    if (!placed.has(connection)) gone.set(run.id, `the connection of the run was deleted: ${connection}`);
  const moved = connected.filter(({ run, connection }) => (placed.get(connection) ?? 0) > run.createdAt);
  if (moved.length === 0) return;
  const handoffs = await loadHandoffs(
    tx,
    moved.map(({ run }) => run),
  );
  for (const { run, connection } of moved) {
    const target = handoffs.get(versionKey(run))?.target;
    if (target && hasSecrets(target))
      gone.set(
        run.id,
        `the connection ${connection} goes elsewhere now, and the run has header values of its own`,
      );
  }
}

export function refuseGone<Write>(
  decision: Decision<Write>,
  { id }: Pick<RunRecord, 'id'>,
  gone: ReadonlyMap<string, string>,
): Decision<Write> {
  const message = gone.get(id);
  if (decision.kind !== 'write' || message === undefined) return decision;
  return { kind: 'notPossible', message };
}
