/**
 * Guarantees: what a notifier's messages are handed to stands beside its version. Deleting it abandons its open messages. It names only
 *   what exists and what its caller's scope has, and no fallback leads back to itself.
 * Transaction: that of named-changes.ts, under the lock of the notifier's row; those that name fallbacks come one after the other.
 * If the process dies here: all of it is written or nothing. Messages recorded after the commit go where it says.
 */
import { databaseNow } from '../postgres/sql/rows.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { resetReminders } from '../store/alerts/reminders.ts';
import { keepNamed, lockNamed, writeNamedRow } from '../store/names/named-rows.ts';
import {
  deleteLockedNotifier,
  keepNotifierVersion,
  lockFallbacks,
  NOTIFIER_ROWS,
  readFallbacks,
  recordTestMessage,
  type StoredNotifier,
  waitForTestMs,
} from '../store/notifiers/rows.ts';
import { abandonOpenRuns } from '../store/runs/ends/abandon-runs.ts';
import type { Asked, NamedDeps, NamedFault, NamedKind } from './named-changes.ts';
import { beyondScope, type Scope, sees } from '../core/access/scope.ts';
import { connectionOf } from '../core/schedules/schedule.ts';
import type { Transaction } from '../postgres/executor.ts';
import { heldFields } from './references.ts';

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

type Naming = Pick<StoredNotifier, 'filter' | 'target' | 'fallback'>;

/** What it names already, it may keep. */
type Named = Asked<StoredNotifier, Naming>;

async function faultsOfNames(tx: Transaction, named: Named): Promise<NamedFault[]> {
  const { scope, before, content } = named;
  const held = heldFields(content.target, before?.target ?? null, scope);
  return [
    ...filterFaults(named),
    ...held.map(({ field, message }) => ({ path: `/channel/target/${field}`, message })),
    ...(await missingIn(tx, named)),
    ...(await fallbackFaults(tx, named)),
  ];
}

/** Judges the whole filter, not only what the edit adds: the caller who writes a notifier decides where its messages go. */
function filterFaults({ scope, content: { filter } }: Named): NamedFault[] {
  if (scope === null) return [];
  if (filter.ids.length === 0)
    return [{ path: '/filter/ids', message: `must name what it tells of: everything ${beyondScope(scope)}` }];
  return filter.ids.flatMap((pattern, index) =>
    isWithin(scope, pattern) ? [] : [{ path: `/filter/ids/${index}`, message: beyondScope(scope) }],
  );
}

function isWithin(scope: Scope, pattern: string): boolean {
  return sees(scope, pattern.endsWith('*') ? pattern.slice(0, -1) : pattern);
}

async function missingIn(tx: Transaction, { scope, before, content }: Named): Promise<NamedFault[]> {
  const connection = connectionOf(content.target);
  if (connection === null) return [];
  const mayName = sees(scope, connection) || (before !== null && connection === connectionOf(before.target));
  if (mayName && (await keepNamed(tx, 'connections', [connection])).has(connection)) return [];
  const message = `names a connection that does not exist: ${connection}`;
  return [{ path: '/channel/target/connection', message }];
}

async function fallbackFaults(
  tx: Transaction,
  { id, scope, before, content: { fallback } }: Named,
): Promise<NamedFault[]> {
  const fault = (message: string) => [{ path: '/fallback', message }];
  if (fallback === null) return [];
  if (fallback === id) return fault('names the notifier itself');
  const mayName = sees(scope, fallback) || fallback === before?.fallback;
  if (!mayName || !(await keepNamed(tx, 'notifiers', [fallback])).has(fallback))
    return fault(`names a notifier that does not exist: ${fallback}`);
  const next = await readFallbacks(tx);
  const chain = [id];
  for (let at: string | undefined = fallback; at !== undefined; at = next.get(at)) {
    chain.push(sees(scope, at) ? at : '…');
    if (at === id) return fault(`makes a cycle: ${chain.join(' → ')}`);
  }
  return [];
}
