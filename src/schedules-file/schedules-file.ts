/** One fault of a file. */
export interface FileFault {
  line: number;
  message: string;
}

export const KINDS = ['limits', 'calendars', 'connections', 'notifiers', 'schedules'] as const;
export type Kind = (typeof KINDS)[number];
export const SINGULAR = {
  limits: 'limit',
  calendars: 'calendar',
  connections: 'connection',
  notifiers: 'notifier',
  schedules: 'schedule',
} as const;

/** A limit, calendar, connection, notifier or schedule of a file. */
export interface FileEntry {
  kind: Kind;
  id: string;
  /** The fields as the API takes them, without the payload. Numbers that no double can hold are raw JSON. */
  fields: Readonly<Record<string, unknown>>;
  /** JSON text, as it stands in the file if that is JSON; null: none. */
  payload: string | null;
  /** The line of the value that a JSON pointer into the entry names, or of the nearest value around it. */
  lineOf: (pointer: string) => number;
}

export interface SchedulesFile {
  /** All schedules of the file get it as a label; null: none. */
  set: string | null;
  /** What the set has and the file has not is deleted. */
  prune: boolean;
  entries: Record<Kind, FileEntry[]>;
  faults: FileFault[];
  /** The text could not be read as a whole: there may be more in it than `entries`. */
  isBroken: boolean;
}

/** The label that says which file a schedule comes from. */
export const SET_LABEL = 'firelock.set';

/** An entry's JSON, as the API takes it. */
export function entryText({ payload }: FileEntry, fields: FileEntry['fields']): string {
  const text = JSON.stringify(fields);
  return payload === null ? text : `${text.slice(0, -1)},"payload":${payload}}`;
}

export function faultOf(entry: FileEntry, pointer: string, message: string): FileFault {
  const place = pointer === '' ? '' : `, ${pointer}`;
  return { line: entry.lineOf(pointer), message: `${SINGULAR[entry.kind]} ${entry.id}${place}: ${message}` };
}

/** Sorted by line, each once, as `FILE:LINE: MESSAGE`. */
export function faultLines(name: string, faults: readonly FileFault[]): string[] {
  const sorted = [...faults].sort((a, b) => a.line - b.line);
  return [...new Set(sorted.map(({ line, message }) => `${name}:${line}: ${message}`))];
}

/** The change of a field; `path` is a JSON pointer. Undefined: it is not there. */
export interface FieldChange {
  path: string;
  before: unknown;
  after: unknown;
}

export interface Change {
  kind: Kind;
  id: string;
  change: 'created' | 'updated' | 'deleted';
  /** The changed fields of an update. */
  fields: FieldChange[];
}

/** An entry of the file that is to be sent, with the fields to be sent. */
export interface ToSend {
  entry: FileEntry;
  fields: FileEntry['fields'];
}

/** What is to be deleted, if it still has that version. */
export interface ToDelete {
  id: string;
  version: number;
}

export interface FilePlan {
  faults: FileFault[];
  changes: Change[];
  unchanged: number;
  /** In the order in which they can be sent. */
  toSend: Record<Kind, ToSend[]>;
  toDelete: ToDelete[];
  /** Schedules that the set has and the file has not, and that stay. */
  left: string[];
}
