import {
  type FileEntry,
  type FieldChange,
  type FileFault,
  type Change,
  type ToSend,
  entryText,
  faultOf,
} from '../schedules-file.ts';
import { type ApiCaller, Refused, ask } from './caller.ts';
import { type NotThereYet, withReal, withStandIns } from './stand-ins.ts';
import { pointer } from '../../core/json-text.ts';

const MAX_ITEMS = 1000;
/** A batch may have 16 MiB. */
const MAX_BYTES = 12 * 1024 * 1024;

/** Bodies of batches, each with the entries in it. */
export function* batchesOf<Item>(
  items: readonly Item[],
  textOf: (item: Item) => string,
): Generator<{ items: Item[]; body: string }, void, void> {
  let batch: Item[] = [];
  let texts: string[] = [];
  let bytes = 0;
  const close = () => {
    const closed = { items: batch, body: `{"items":[${texts.join(',')}]}` };
    [batch, texts, bytes] = [[], [], 0];
    return closed;
  };
  for (const item of items) {
    const text = textOf(item);
    const size = Buffer.byteLength(text);
    if (batch.length === MAX_ITEMS || (batch.length > 0 && bytes + size > MAX_BYTES)) yield close();
    batch.push(item);
    texts.push(text);
    bytes += size;
  }
  if (batch.length > 0) yield close();
}

interface PlannedSchedules {
  faults: FileFault[];
  changes: Change[];
  unchanged: number;
  toSend: ToSend[];
}

type Missing = NotThereYet & { schedules: Set<string> };

/** Dry runs of schedules in the order of parentsFirst. */
export async function planSchedules(
  caller: ApiCaller,
  entries: readonly FileEntry[],
  absent: Omit<NotThereYet, 'schedules'> & { circular: Iterable<string> },
): Promise<PlannedSchedules> {
  const planned: PlannedSchedules = { faults: [], changes: [], unchanged: 0, toSend: [] };
  const missing: Missing = { ...absent, schedules: new Set(absent.circular) };
  const textOf = (entry: FileEntry) => entryText(entry, entry.fields);
  for (const { items } of batchesOf(entries, textOf)) {
    let left = items;
    // Invalid entries are refused before impossible ones are looked for: without the invalid ones, the rest is sent again.
    while (left.length > 0) {
      const refused = await tryBatch(caller, left, missing, planned);
      for (const { id } of refused) missing.schedules.add(id);
      left = refused.size === 0 ? [] : left.filter((entry) => !refused.has(entry));
    }
  }
  return planned;
}

/** Answers the refused entries; none: all are planned. */
async function tryBatch(
  caller: ApiCaller,
  entries: readonly FileEntry[],
  missing: Missing,
  planned: PlannedSchedules,
): Promise<ReadonlySet<FileEntry>> {
  const tried = entries.map((entry) => ({ entry, ...withStandIns(entry, missing) }));
  const texts = tried.map(({ entry, sent }) => entryText(entry, sent));
  try {
    const body = `{"items":[${texts.join(',')}],"dryRun":true}`;
    const answer = await ask(caller, 'POST', 'schedules/batch', body);
    const { changes } = answer as {
      changes: { change: 'created' | 'updated' | 'unchanged'; fields: FieldChange[] }[];
    };
    for (const [index, { change, fields }] of changes.entries()) {
      const one = tried[index];
      if (!one) continue;
      if (change === 'created') missing.schedules.add(one.entry.id);
      note(planned, one.entry, change === 'created', withReal(fields, one.replaced));
    }
    return new Set();
  } catch (error) {
    if (!(error instanceof Refused) || (error.status !== 400 && error.status !== 422)) throw error;
    return refusedAmong(entries, error, planned);
  }
}

function refusedAmong(
  entries: readonly FileEntry[],
  error: Refused,
  { faults }: PlannedSchedules,
): ReadonlySet<FileEntry> {
  const refused = new Set<FileEntry>();
  for (const { path, message } of error.faults) {
    const [, index = '', pointer = ''] = /^\/items\/(\d+)(.*)$/s.exec(path) ?? [];
    const entry = entries[Number(index === '' ? -1 : index)];
    if (!entry) throw error;
    refused.add(entry);
    faults.push(faultOf(entry, pointer, message));
  }
  if (refused.size === 0) throw error;
  return refused;
}

function note(planned: PlannedSchedules, entry: FileEntry, isNew: boolean, changes: readonly FieldChange[]): void {
  const { id, kind } = entry;
  const kept = keepWhatIsNotSaid(changes, entry);
  if (!isNew && kept.changes.length === 0) {
    planned.unchanged += 1;
    return;
  }
  planned.toSend.push({ entry, fields: kept.fields });
  planned.changes.push({
    kind,
    id,
    change: isNew ? 'created' : 'updated',
    fields: isNew ? [] : kept.changes,
  });
}

const PAUSE = ['enabled', 'pauseReason', 'pauseUntil'] as const;

/**
 * If the file does not say whether a schedule is enabled, a pause stays: a paused schedule must not go on because a
 * daemon starts or a file is applied. Payloads that differ only in white space count as equal.
 */
function keepWhatIsNotSaid(changes: readonly FieldChange[], { fields, payload }: FileEntry) {
  let left = changes.flatMap((one) => (one.path === '/payload' ? payloadChanges(one) : [one]));
  const saysNothing = PAUSE.every((name) => fields[name] === undefined);
  const ends = left.some(({ path, before }) => path === '/enabled' && before === false);
  const kept: Record<string, unknown> = {};
  if (saysNothing && ends) {
    for (const name of PAUSE) kept[name] = left.find(({ path }) => path === `/${name}`)?.before ?? null;
    left = left.filter(({ path }) => !PAUSE.some((name) => path === `/${name}`));
  }
  return { changes: left, fields: { ...fields, ...kept }, payload };
}

/** What a file changes in a payload, place by place; what is not there is undefined. None: they differ in white space at most. */
function payloadChanges({ path, before, after }: FieldChange): FieldChange[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const changes = changesIn(before, after, []);
  // Members in another order, which the target gets as they stand.
  if (changes.length === 0) return [{ path, before, after }];
  return changes.map((change) => ({ ...change, path: path + change.path }));
}

function changesIn(before: unknown, after: unknown, path: readonly string[]): FieldChange[] {
  const [one, other] = [membersOf(before), membersOf(after)];
  if (one === null || other === null || Array.isArray(before) !== Array.isArray(after))
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path: pointer(path), before, after }];
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].flatMap((name) => changesIn(ownOf(one, name), ownOf(other, name), [...path, name]));
}

/** Null: neither an object nor a list. */
function membersOf(value: unknown): object | null {
  return typeof value === 'object' && value !== null && !JSON.isRawJSON(value) ? value : null;
}

function ownOf(members: object, name: string): unknown {
  return Object.hasOwn(members, name) ? (members as Record<string, unknown>)[name] : undefined;
}
