import { type ReadyRun, claimIfReady } from '../../store/runs/claims/claim-if-ready.ts';
import { acceptUnlessDeleted } from './accept-claimed.ts';
import type { Dispatch } from './dispatch-state.ts';
import { handBackAll, notifyIfIdle } from './own-claims.ts';
import { maySendMany } from './send.ts';

/**
 * Claims runs that this process has just recorded, by their ids: a search of all lanes would find them later, and cost more the more
 * there is to send. Where there is no room for one, or the claim fails, the loop looks for it.
 */
export async function claimOffered(dispatch: Dispatch, offered: readonly ReadyRun[]): Promise<void> {
  const { deps, book, loop } = dispatch;
  const runs = withRoom(dispatch, offered);
  if (runs.length < offered.length) loop.wake();
  if (runs.length === 0) return;
  const ids = runs.map(({ id }) => id);
  const request = { instanceId: deps.lease.instanceId, targetTypes: deps.targets.types };
  const claimed = await deps.database.run((db) => claimIfReady(db, ids, request)).catch(() => []);
  for (const { lane } of runs) book.addClaims(book.of(lane), -1);
  if (claimed.length < runs.length) loop.wake();
  await acceptUnlessDeleted(dispatch, claimed);
  if (!dispatch.accepting) await handBackAll(dispatch);
  notifyIfIdle(dispatch);
}

/** Those for which room was taken: none before the dispatcher is started, or once it stops. */
function withRoom({ deps, accepting, book, room, loop }: Dispatch, offered: readonly ReadyRun[]): ReadyRun[] {
  if (loop.passes() === 0 || !accepting || !maySendMany(deps)) return [];
  return offered.filter(({ lane }) => deps.targets.canSend(lane) && room.takeIfNoneIsLeft(book.of(lane)));
}
