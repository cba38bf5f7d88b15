/**
 * Guarantees: the version of a named thing rises if something of it changes, and only then; what others name stays. What `decide` answers
 *   is judged and written under the lock of its row.
 * Transaction: one. What follows from the commit (`afterPut`, `afterDelete`) comes after it.
 * If the process dies here: it is written or not. Where it is, the loops of any instance do what follows.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Scope } from '../core/access/scope.ts';
import type { AuditDetail } from '../core/audit.ts';
import type { NamedNoun } from '../core/events.ts';
import { pointer } from '../core/json-text.ts';
import type { Database } from '../postgres/database.ts';
import type { Transaction } from '../postgres/executor.ts';
import { databaseNow } from '../postgres/sql/rows.ts';
import type { EventBus } from '../runtime/event-bus.ts';
import type { Auditor } from '../store/audit/audit-rows.ts';
import { type NamedRows, type NamedThing, deleteNamed, lockNamed, writeNamedRow } from '../store/names/named-rows.ts';
import { OperationRefused } from './operation-refused.ts';
import { refuseWhileNamed } from './references.ts';

export interface NamedDeps {
  database: Database;
  events: EventBus;
  /** What the caller may name, and be told of. */
  scope: Scope;
  auditor?: Auditor;
}

/** One thing that a well-formed definition cannot be. */
export type NamedFault = OperationRefused['faults'][number];

/** What a kind of named things has of its own. `Content`: what a caller decides of one. `Deps`: what it needs of the daemon. */
export interface NamedKind<Thing extends NamedThing & Content, Content, Deps = object> {
  noun: NamedNoun;
  rows: NamedRows<Thing>;
  /** Locks that come before that of the row. */
  lockFirst?: (tx: Transaction) => Promise<void>;
  /** What it cannot be, beside what `decide` has found. */
  judge?: (tx: Transaction, asked: Asked<Thing, Content>) => Promise<readonly NamedFault[]>;
  /** What the audit says of it beside its version. */
  detail?: (thing: Thing) => AuditDetail;
  /** As the API has it, but for the values of secrets. */
  fieldsOf: (content: Content) => object;
  /** Of these, as JSON pointers, the members are told apart. */
  descends?: readonly string[];
  complete(content: Content, as: Completing<Thing>, deps: Deps): Thing;
  /** Answers it as it was written; absent: its row says all of it. */
  write?(tx: Transaction, thing: Thing, change: { before: Thing | null; fields: string[] }): Promise<Thing>;
  /** Whether or not something has changed. Answers it as it is then. */
  afterPut?(deps: Deps, thing: Thing): Promise<Thing> | Thing;
  /** Answers the last version, and what the audit says beside it; absent: it goes with its row. */
  remove?(tx: Transaction, thing: Thing): Promise<Removed<Deps>>;
}

interface Removed<Deps> {
  version: number;
  detail?: AuditDetail;
  afterDelete?: (deps: Deps) => void;
}

export interface Asked<Thing, Content> {
  id: string;
  scope: Scope;
  before: Thing | null;
  content: Content;
}

interface Completing<Thing> extends Pick<NamedThing, 'id' | 'version' | 'updatedAt'> {
  uid: string;
  before: Thing | null;
}

/** `uid`: that which the thing has or will get. `faults`: why it cannot be stored. It may throw, to leave all as it is. */
export type Decide<Thing, Content> = (
  before: Thing | null,
  uid: string,
) => { content: Content; faults?: readonly NamedFault[] };

export interface NamedPut<Thing> {
  before: Thing | null;
  thing: Thing;
  change: 'created' | 'updated' | 'unchanged';
  /** The changed fields of an update, as JSON pointers. */
  fields: string[];
}

/** Creates or replaces it. @throws OperationRefused, and the errors of `decide` */
export async function putNamed<Thing extends NamedThing & Content, Content, Deps>(
  deps: NamedDeps & Deps,
  kind: NamedKind<Thing, Content, Deps>,
  id: string,
  decide: Decide<Thing, NoInfer<Content>>,
): Promise<NamedPut<Thing>> {
  const { noun } = kind;
  const put = await deps.database.transaction(async (tx) => {
    const planned = await plan(tx, deps, kind, { id, decide });
    const { before, change, fields } = planned;
    if (change === 'unchanged') return planned;
    const thing = await write(tx, kind, planned);
    const detail = { change, version: thing.version, ...kind.detail?.(thing), ...(before && { fields }) };
    await deps.auditor?.note(tx, { action: `${noun}.put`, subject: id, scheduleId: null, detail });
    return { ...planned, thing };
  });
  const { change, thing } = put;
  if (change !== 'unchanged') deps.events.emit({ type: 'namedWritten', noun, id, change, version: thing.version });
  return kind.afterPut ? { ...put, thing: await kind.afterPut(deps, thing) } : put;
}

async function write<Thing extends NamedThing & Content, Content, Deps>(
  tx: Transaction,
  kind: NamedKind<Thing, Content, Deps>,
  { thing, before, fields }: NamedPut<Thing>,
): Promise<Thing> {
  if (kind.write) return kind.write(tx, thing, { before, fields });
  await writeNamedRow(tx, kind.rows, thing, { isNew: before === null });
  return thing;
}

/** What `putNamed` would make of it, or refuse; writes nothing. */
export async function tryToPutNamed<Thing extends NamedThing & Content, Content, Deps>(
  deps: Pick<NamedDeps, 'database' | 'scope'> & Deps,
  kind: NamedKind<Thing, Content, Deps>,
  id: string,
  decide: Decide<Thing, NoInfer<Content>>,
): Promise<NamedPut<Thing>> {
  return deps.database.transaction((tx) => plan(tx, deps, kind, { id, decide }));
}

async function plan<Thing extends NamedThing & Content, Content, Deps>(
  tx: Transaction,
  deps: Pick<NamedDeps, 'scope'> & Deps,
  kind: NamedKind<Thing, Content, Deps>,
  { id, decide }: { id: string; decide: Decide<Thing, NoInfer<Content>> },
): Promise<NamedPut<Thing>> {
  const { scope } = deps;
  await kind.lockFirst?.(tx);
  const before = await lockNamed(tx, kind.rows, { id, scope });
  const uid = before && 'uid' in before ? String(before.uid) : randomUUID();
  const { content, faults = [] } = decide(before, uid);
  const judged = (await kind.judge?.(tx, { id, scope, before, content })) ?? [];
  const all = [...faults, ...judged];
  if (all.length > 0) throw new OperationRefused(422, `the ${kind.noun} is not possible as it is described`, all);
  const fields = before ? changedFields(kind, before, content) : [];
  if (before && fields.length === 0) return { before, thing: before, change: 'unchanged', fields };
  const version = (before?.version ?? 0) + 1;
  const as = { id, uid, version, updatedAt: await databaseNow(tx), before };
  return { before, thing: kind.complete(content, as, deps), change: before ? 'updated' : 'created', fields };
}

/** As JSON pointers, and names only: a value may be a secret. A stored thing has come back from JSON. */
function changedFields<Content>(
  { fieldsOf, descends = [] }: Pick<NamedKind<NamedThing & Content, Content>, 'fieldsOf' | 'descends'>,
  before: Content,
  after: Content,
): string[] {
  const [was, is] = [before, after].map((one): unknown => JSON.parse(JSON.stringify(fieldsOf(one))));
  return changedBelow('', was, is, ['', ...descends]);
}

/** What is of another type is another thing as a whole. */
function changedBelow(path: string, was: unknown, is: unknown, descends: readonly string[]): string[] {
  if (isDeepStrictEqual(was, is)) return [];
  if (!descends.includes(path) || !isObject(was) || !isObject(is) || was['type'] !== is['type']) return [path];
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].flatMap((name) =>
    changedBelow(path + pointer([name]), was[name] ?? null, is[name] ?? null, descends),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** False: there is none. @throws OperationRefused, and the errors of `check` */
export async function removeNamed<Thing extends NamedThing & Content, Content, Deps>(
  deps: NamedDeps & Deps,
  kind: NamedKind<Thing, Content, Deps>,
  id: string,
  check: (current: Thing) => void = () => undefined,
): Promise<boolean> {
  const { database, events, auditor, scope } = deps;
  const { noun, rows } = kind;
  const removed = await database.transaction(async (tx) => {
    const current = await lockNamed(tx, rows, { id, toDelete: true });
    if (!current) return null;
    check(current);
    await refuseWhileNamed(tx, rows.table, { id, scope });
    const done: Removed<Deps> = kind.remove ? await kind.remove(tx, current) : { version: current.version };
    if (!kind.remove) await deleteNamed(tx, rows.table, id);
    const detail = { version: done.version, ...done.detail };
    await auditor?.note(tx, { action: `${noun}.delete`, subject: id, scheduleId: null, detail });
    return done;
  });
  if (removed === null) return false;
  removed.afterDelete?.(deps);
  events.emit({ type: 'namedWritten', noun, id, change: 'deleted', version: removed.version });
  return true;
}
