import {
  type Document,
  LineCounter,
  type Node,
  type YAMLMap,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
} from 'yaml';
import { pointer } from '../../api/http/json/json-body.ts';
import {
  type FileEntry,
  KINDS,
  type Kind,
  SET_LABEL,
  SINGULAR,
  type SchedulesFile,
} from '../schedules-file.ts';
import { MAX_EXPANDED, jsonTextOf, treeOf } from './json-tree.ts';
import { keyText, offsetAt, offsetOf, resolved } from './places.ts';
import { type Variables, isSecret, substitute } from './variables.ts';

interface Options {
  variables: Variables;
  /** Given beside the file. */
  set?: string | undefined;
}

/** Reads YAML, of which JSON is a part. Never throws: what is wrong is in `faults`. */
export function readSchedulesFile(source: string, { variables, set }: Options): SchedulesFile {
  const lines = new LineCounter();
  const document: Document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  const file: SchedulesFile = {
    set: set ?? null,
    entries: { limits: [], calendars: [], schedules: [] },
    faults: [],
    isBroken: document.errors.some(({ code }) => code !== 'DUPLICATE_KEY'),
  };
  const reading: FileReading = {
    file,
    document,
    source,
    variables,
    lineAt: (offset) => lines.linePos(offset).line,
    expansion: { left: MAX_EXPANDED },
  };
  for (const { pos, code, message } of [...document.errors, ...document.warnings]) {
    const said = code === 'DUPLICATE_KEY' ? `the name ${wordAt(source, pos[0])} is there twice` : message;
    file.faults.push({ line: reading.lineAt(pos[0]), message: said });
  }
  if (!file.isBroken) readRoot(reading);
  return file;
}

interface FileReading {
  file: SchedulesFile;
  document: Document;
  source: string;
  variables: Variables;
  lineAt: (offset: number) => number;
  expansion: { left: number };
}

function readRoot(reading: FileReading): void {
  const { file, document } = reading;
  const root = document.contents;
  if (!isMap(root) || root.items.length === 0) {
    faultAt(reading, root, `must be an object with some of ${['set', ...KINDS].join(', ')}`);
    return;
  }
  for (const { key, value } of root.items) {
    const name = keyText(key);
    if (name === 'set') readSet(reading, value);
    else if (isKind(name)) readList(reading, name, value, key);
    else faultAt(reading, key, `${name} is not a field of the file; it has ${['set', ...KINDS].join(', ')}`);
  }
  if (file.set !== null) file.entries.schedules = file.entries.schedules.map((one) => labelled(one, file));
}

function isKind(name: string): name is Kind {
  return (KINDS as readonly string[]).includes(name);
}

function readSet(reading: FileReading, node: unknown): void {
  const { file } = reading;
  const value = isScalar(node) ? node.value : null;
  if (typeof value !== 'string' || value === '') faultAt(reading, node, 'set must be a name');
  else if (file.set !== null && file.set !== value)
    faultAt(reading, node, `set is ${value}, and --set says ${file.set}`);
  else file.set = value;
}

function readList(reading: FileReading, kind: Kind, node: unknown, key: unknown): void {
  const list = resolved(node, reading.document);
  if (!isSeq(list)) {
    faultAt(reading, offsetOf(node) === null ? key : node, `${kind} must be a list`);
    return;
  }
  const first = new Map<string, number>();
  for (const item of list.items) {
    const at = resolved(item, reading.document);
    const id = isMap(at) ? at.get('id') : null;
    if (!isMap(at)) faultAt(reading, item, `${SINGULAR[kind]}: must be an object with an id`);
    else if (typeof id !== 'string')
      faultAt(
        reading,
        item,
        `${SINGULAR[kind]}, /id: ${id === undefined ? 'is required' : 'must be a string'}`,
      );
    else {
      const line = reading.lineAt(offsetAt(at, '/id', reading.document));
      const earlier = first.get(id);
      if (earlier !== undefined)
        reading.file.faults.push({ line, message: `${SINGULAR[kind]} ${id} is on line ${earlier} too` });
      else reading.file.entries[kind].push(entryOf(reading, kind, id, at));
      first.set(id, earlier ?? line);
    }
  }
}

function entryOf(reading: FileReading, kind: Kind, id: string, map: YAMLMap): FileEntry {
  const { document, source, variables, lineAt, file, expansion } = reading;
  const lineOf = (pointer: string) => lineAt(offsetAt(map, pointer, document));
  const fault = (path: string, message: string) =>
    file.faults.push({ line: lineOf(path), message: `${SINGULAR[kind]} ${id}, ${path}: ${message}` });
  const textAt = (text: string, path: readonly string[]) => {
    if (!isSecret(path)) return text;
    const replaced = substitute(text, variables);
    for (const name of replaced.missing)
      fault(pointer(path), `the environment variable ${name} is not set, or empty`);
    return replaced.text;
  };
  const into = { document, source, textAt, fault, expansion };
  let payload: string | null = null;
  const members = map.items.flatMap(({ key, value }): [string, unknown][] => {
    const name = keyText(key);
    if (name !== 'payload' || kind !== 'schedules') return [[name, treeOf(value, into, [name])]];
    payload = value === null ? null : jsonTextOf(value as Node, into, [name]);
    return [];
  });
  return { kind, id, fields: Object.fromEntries(members), payload, lineOf };
}

function labelled(entry: FileEntry, file: SchedulesFile): FileEntry {
  const labels = entry.fields['labels'] ?? {};
  // What is no object is for the server to refuse.
  if (typeof labels !== 'object' || Array.isArray(labels)) return entry;
  const own = (labels as Record<string, unknown>)[SET_LABEL];
  if (own !== undefined && own !== file.set) {
    const message = `schedule ${entry.id}: its label ${SET_LABEL} is ${JSON.stringify(own)}, and the set is ${file.set ?? ''}`;
    file.faults.push({ line: entry.lineOf(`/labels/${SET_LABEL}`), message });
  }
  return { ...entry, fields: { ...entry.fields, labels: { ...labels, [SET_LABEL]: file.set } } };
}

function faultAt({ file, lineAt }: FileReading, node: unknown, message: string): void {
  file.faults.push({ line: lineAt(offsetOf(node) ?? 0), message });
}

/** The name that begins there. */
function wordAt(source: string, offset: number): string {
  return /^(?:"[^"\n]*"|'[^'\n]*'|[^\s:,{}]+)/.exec(source.slice(offset, offset + 200))?.[0] ?? '';
}
