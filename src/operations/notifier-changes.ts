/**
 * Guarantees: what a notifier's messages are handed to stands beside its version. Deleting it abandons its open messages.
 * Transaction: that of named-changes.ts, under the lock of the notifier's row; those that name fallbacks come one after the other.
 * If the process dies here: all of it is written or nothing. Messages recorded after the commit go where it says.
 */
import { databaseNow } from '../postgres/sql/database-now.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { resetReminders } from '../store/alerts/reminders.ts';
import { lockNamed, writeNamedRow } from '../store/names/find-named.ts';
import {
  deleteLockedNotifier,
  keepNotifierVersion,
  lockFallbacks,
  NOTIFIER_ROWS,
  type StoredNotifier,
} from '../store/notifiers/rows.ts';
import { recordTestMessage, waitForTestMs } from '../store/notifiers/test-message.ts';
import { abandonOpenRuns } from '../store/runs/ends/abandon-runs.ts';
import type { NamedDeps, NamedKind } from './named-changes.ts';
import { faultsOfNames } from './notifier-names.ts';

/** What a caller decides: with its secret values encrypted, or kept as they are stored. */
export type NotifierContent = Omit<StoredNotifier, 'uid' | 'id' | 'version' | 'updatedAt'>;

export const NOTIFIER_KIND: NamedKind<StoredNotifier, NotifierContent, { wake: Wake }> = {
  noun: 'notifier',
  rows: NOTIFIER_ROWS,
  lockFirst: lockFallbacks,
  judge: faultsOfNames,
  fieldsOf: ({ description, enabled, on, filter, remindSeconds, afterFailures, fallback, ...where }) => ({
    ...{ description, enabled, on, filter, remindSeconds, afterFailures, fallback },
    channel: channelOf(where),
  }),
  descends: ['/channel', '/channel/target', '/channel/target/headers'],
  complete: (content, { uid, id, version, updatedAt }) => ({ ...content, uid, id, version, updatedAt }),
  write: async (tx, notifier, { before, fields }) => {
    await writeNamedRow(tx, NOTIFIER_ROWS, notifier, { isNew: before === null });
    await keepNotifierVersion(tx, notifier, before === null ? 'created' : 'updated');
    if (fields.some((field) => REMINDING.includes(field))) await resetReminders(tx, notifier);
    return notifier;
  },
  remove: async (tx, { id, uid, version }) => {
    const { abandoned, effects } = await abandonOpenRuns(tx, { uid, id: '' });
    await deleteLockedNotifier(tx, { id });
    return {
      version,
      detail: { abandonedRuns: abandoned },
      afterDelete: ({ wake }) => wakeFor(wake, { effects }),
    };
  },
};

interface TestDeps extends Pick<NamedDeps, 'database' | 'auditor'> {
  wake: Wake;
}

/**
 * Sends a message of the event `test` now, also while it is not enabled. Answers the id of its run, or how long it has to wait for those
 * of the last minute; null: there is no such notifier.
 */
export async function testNotifier(
  { database, wake, auditor }: TestDeps,
  id: string,
): Promise<{ runId: string } | { waitMs: number } | null> {
  const tested = await database.transaction(async (tx) => {
    const notifier = await lockNamed(tx, NOTIFIER_ROWS, { id });
    if (!notifier) return null;
    const now = await databaseNow(tx);
    const waitMs = await waitForTestMs(tx, id, now);
    if (waitMs > 0) return { waitMs };
    const recorded = await recordTestMessage(tx, notifier, now);
    await auditor?.note(tx, {
      action: 'notifier.test',
      subject: id,
      scheduleId: null,
      detail: { runId: recorded },
    });
    return { runId: recorded };
  });
  if (tested && 'runId' in tested) wakeFor(wake, { toClaim: 1 });
  return tested;
}

/** As JSON pointers: when what is open is told again follows from these. */
const REMINDING: readonly string[] = ['/enabled', '/remindSeconds'];

function channelOf({ channel: type, target }: Pick<NotifierContent, 'channel' | 'target'>): object {
  if (target.type !== 'http') return { ...target, type };
  if (type === 'webhook' || typeof target.body === 'string') return { type, target };
  // The secrets of a channel's own template are fields of the channel.
  return { type, target: { ...target, body: null }, ...target.body.secrets };
}
