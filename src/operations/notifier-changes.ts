/**
 * Guarantees: a notifier that is another one's fallback stays, and no fallback leads back to itself; what its messages are handed to
 *   stands beside its version. With it end its open messages.
 * Transaction: one, under the lock of the notifier's row; those that name fallbacks come one after the other.
 * If the process dies here: all of it is written or nothing. Messages recorded after the commit go where it says.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Scope } from '../core/access/scope.ts';
import type { HandoffTarget } from '../core/schedules/schedule.ts';
import type { Database } from '../postgres/database.ts';
import type { Transaction } from '../postgres/executor.ts';
import { databaseNow } from '../postgres/sql/database-now.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import { type Wake, wakeFor } from '../runtime/loop/wake.ts';
import { resetReminders } from '../store/alerts/reminders.ts';
import type { Auditor } from '../store/audit/record-audit.ts';
import { type StoredNotifier, lockFallbacks, lockNotifier } from '../store/notifiers/find-notifiers.ts';
import { recordTestMessage, waitForTestMs } from '../store/notifiers/test-message.ts';
import {
  changeLockedNotifier,
  createNotifier,
  deleteLockedNotifier,
} from '../store/notifiers/write-notifiers.ts';
import { abandonOpenRuns } from '../store/runs/ends/abandon-runs.ts';
import { refuseWhileNamed } from './named-things.ts';
import { type NotifierFault, faultsOfNames } from './notifier-names.ts';

interface NotifierChangeDeps {
  database: Database;
  events: EventBus;
  wake: Wake;
  /** What the caller may name, and be told of. */
  scope: Scope;
  auditor?: Auditor;
}

/** It names what does not exist, or has values that cannot be stored. Nothing was written. */
export class ImpossibleNotifier extends Error {
  override readonly name = 'ImpossibleNotifier';
  readonly faults: readonly NotifierFault[];

  constructor(faults: readonly NotifierFault[]) {
    super(faults.map(({ path, message }) => `${path} ${message}`).join('; '));
    this.faults = faults;
  }
}

/** What a caller decides: with its secret values encrypted, or kept as they are stored. */
export type NotifierContent = Omit<StoredNotifier, 'uid' | 'id' | 'version' | 'updatedAt'>;

/** `uid` is the notifier's, or the one that it will get. `faults`: why it cannot be stored. */
type Decide = (
  current: StoredNotifier | null,
  uid: string,
) => { content: NotifierContent; faults: readonly NotifierFault[] };

export interface PutNotifier {
  before: StoredNotifier | null;
  notifier: StoredNotifier;
  change: 'created' | 'updated' | 'unchanged';
  /** The changed fields of an update, as JSON pointers. */
  fields: string[];
}

/** Creates or replaces a notifier. `decide` runs under its lock, and may throw to leave it as it is. @throws ImpossibleNotifier */
export async function putNotifier(
  { database, events, scope, auditor }: Omit<NotifierChangeDeps, 'wake'>,
  id: string,
  decide: Decide,
): Promise<PutNotifier> {
  const put = await database.transaction(async (tx) => {
    const planned = await planPut(tx, { id, scope, decide });
    const { before, notifier, change, fields } = planned;
    if (change === 'unchanged') return planned;
    await (before ? changeLockedNotifier : createNotifier)(tx, notifier);
    if (fields.some((field) => REMINDING.includes(field))) await resetReminders(tx, notifier);
    const detail = { change, version: notifier.version, ...(before && { fields }) };
    await auditor?.note(tx, { action: 'notifier.put', subject: id, scheduleId: null, detail });
    return planned;
  });
  const { change, notifier } = put;
  if (change !== 'unchanged')
    events.emit({ type: 'notifierWritten', notifierId: id, change, version: notifier.version });
  return put;
}

/** What `putNotifier` would make of it, or refuse; writes nothing. */
export async function tryToPutNotifier(
  { database, scope }: Pick<NotifierChangeDeps, 'database' | 'scope'>,
  id: string,
  decide: Decide,
): Promise<PutNotifier> {
  return database.transaction((tx) => planPut(tx, { id, scope, decide }));
}

interface Put extends Pick<NotifierChangeDeps, 'scope'> {
  id: string;
  decide: Decide;
}

/** Under the lock of the notifier's row. */
async function planPut(tx: Transaction, { id, scope, decide }: Put): Promise<PutNotifier> {
  await lockFallbacks(tx);
  const current = await lockNotifier(tx, id, { toDelete: false });
  const uid = current?.uid ?? randomUUID();
  const { content, faults } = decide(current, uid);
  const all = [...faults, ...(await faultsOfNames(tx, { id, scope, before: current, content }))];
  if (all.length > 0) throw new ImpossibleNotifier(all);
  const fields = current ? changedFields(current, content) : [];
  if (current && fields.length === 0)
    return { before: current, notifier: current, change: 'unchanged', fields };
  const version = (current?.version ?? 0) + 1;
  const notifier = { ...content, uid, id, version, updatedAt: await databaseNow(tx) };
  return { before: current, notifier, change: current ? 'updated' : 'created', fields };
}

/** False: there is none. @throws StillNamed, and the errors of `check` */
export async function deleteNotifier(
  { database, events, wake, scope, auditor }: NotifierChangeDeps,
  id: string,
  check: (current: StoredNotifier) => void,
): Promise<boolean> {
  const done = await database.transaction(async (tx) => {
    const current = await lockNotifier(tx, id, { toDelete: true });
    if (!current) return null;
    check(current);
    await refuseWhileNamed(tx, 'notifiers', { id, scope });
    const { uid, version } = current;
    const { abandoned, effects } = await abandonOpenRuns(tx, { uid, id: '' });
    await deleteLockedNotifier(tx, current);
    const detail = { version, abandonedRuns: abandoned };
    await auditor?.note(tx, { action: 'notifier.delete', subject: id, scheduleId: null, detail });
    return { version, effects };
  });
  if (done === null) return false;
  wakeFor(wake, done);
  events.emit({ type: 'notifierWritten', notifierId: id, change: 'deleted', version: done.version });
  return true;
}

/**
 * Sends a message of the event `test` now, also while it is not enabled. Answers the id of its run, or how long it has to wait for those
 * of the last minute; null: there is no such notifier.
 */
export async function testNotifier(
  { database, wake, auditor }: Omit<NotifierChangeDeps, 'scope'>,
  id: string,
): Promise<{ runId: string } | { waitMs: number } | null> {
  const tested = await database.transaction(async (tx) => {
    const notifier = await lockNotifier(tx, id, { toDelete: false });
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
const FIELDS = [
  'description',
  'enabled',
  'on',
  'filter',
  'remindSeconds',
  'afterFailures',
  'fallback',
] as const;

/** As JSON pointers, and names only: a value may be a secret. */
function changedFields(before: NotifierContent, after: NotifierContent): string[] {
  const changed = FIELDS.filter((field) => !isDeepStrictEqual(before[field], after[field]));
  const [was, is] = [before, after].map(channelOf);
  return [...changed.map((field) => `/${field}`), ...changedBelow('/channel', was, is)];
}

/** As the API has it. A stored one has come back from JSON. */
function channelOf({ channel: type, target }: NotifierContent): unknown {
  const plain = JSON.parse(JSON.stringify(target)) as HandoffTarget;
  return plain.type === 'http' ? { type, target: plain } : { ...plain, type };
}

/** Of another kind, it is another channel as a whole. */
function changedBelow(path: string, was: unknown, is: unknown): string[] {
  if (isDeepStrictEqual(was, is)) return [];
  const isOther = path === '/channel' && (was as Members)['type'] !== (is as Members)['type'];
  if (!DESCENDED.includes(path) || isOther) return [path];
  const [before, after] = [was as Members, is as Members];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
    changedBelow(
      `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      before[name] ?? null,
      after[name] ?? null,
    ),
  );
}

type Members = Record<string, unknown>;
const DESCENDED = ['/channel', '/channel/target', '/channel/target/headers'];
