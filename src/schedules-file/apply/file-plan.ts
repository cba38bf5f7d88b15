import type { FileEntry, FileFault, Kind } from '../schedules-file.ts';

/** The change of a field; `path` is a JSON pointer. */
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
}
