import { connectionOfLane } from '../../core/connections/connection.ts';
import type { Decision } from '../../core/runs/run-decisions.ts';
import type { RunRecord } from '../../core/runs/run-record.ts';
import { connectionOf } from '../../core/schedules/schedule.ts';
import { hasSecrets } from '../../core/schedules/target-secrets.ts';
import type { Transaction } from '../../postgres/executor.ts';
import { keepNamed, keepNotifiers, keepPlaced } from '../names/named-rows.ts';
import { loadHandoffs, versionKey } from '../schedules/schedule-versions.ts';

/**
 * No one-off run and no message is opened again whose limit, connection or notifier is gone, or whose own header values would go elsewhere
 * now. A one-off run keeps its limit and its connection, which may have been deleted since the run ended, or moved: then what
 * the run itself would send is not sent there. Answers what is gone, by run. What exists stays until the action is done.
 */
export async function goneNamesOf(tx: Transaction, runs: readonly RunRecord[]): Promise<ReadonlyMap<string, string>> {
  const gone = new Map<string, string>();
  const oneOffs = runs.filter(({ scheduleId }) => scheduleId === '');
  const limits = await keepNamed(
    tx,
    'limits',
    oneOffs.flatMap(({ limitId }) => limitId ?? []),
  );
  for (const { id, limitId } of oneOffs)
    if (limitId !== null && !limits.has(limitId)) gone.set(id, `the limit of the run was deleted: ${limitId}`);
  await addGoneNotifiers(tx, oneOffs.filter(isMessage), gone);
  await addGoneConnections(tx, oneOffs, gone);
  return gone;
}

const NONE: Awaited<ReturnType<typeof loadHandoffs>> = new Map();

const isMessage = ({ trigger }: RunRecord): boolean => trigger === 'notify';

/** A message keeps the version of its notifier, in whose form it was written. */
async function addGoneNotifiers(
  tx: Transaction,
  messages: readonly RunRecord[],
  gone: Map<string, string>,
): Promise<void> {
  const there = await keepNotifiers(
    tx,
    messages.map(({ scheduleUid }) => scheduleUid),
  );
  for (const { id, scheduleUid, notifierId, ownPayload } of messages) {
    if (!there.has(scheduleUid)) gone.set(id, `the notifier of the run was deleted: ${notifierId ?? ''}`);
    else if (ownPayload === null) gone.set(id, 'the run was ended before its message was written');
  }
}

async function addGoneConnections(
  tx: Transaction,
  oneOffs: readonly RunRecord[],
  gone: Map<string, string>,
): Promise<void> {
  // The lane of a message names its notifier.
  const messages = oneOffs.filter(isMessage);
  const ofMessages = messages.length === 0 ? NONE : await loadHandoffs(tx, messages);
  const connected = oneOffs.flatMap((run) => {
    const target = ofMessages.get(versionKey(run))?.target;
    const connection = target ? connectionOf(target) : connectionOfLane(run.lane);
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
      gone.set(run.id, `the connection ${connection} goes elsewhere now, and the run has header values of its own`);
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
