import { type Document, LineCounter, type Node, type YAMLMap, isMap, isScalar, isSeq, parseDocument } from 'yaml';
import { pointer } from '../../core/json-text.ts';
import type { FileVariables } from '../../core/secrets/file-variables.ts';
import { type FileEntry, KINDS, type Kind, SET_LABEL, SINGULAR, type SchedulesFile } from '../schedules-file.ts';
import { cutIntoItems } from './cut-items.ts';
import {
  isSecret,
  jsonTextOf,
  keyText,
  MAX_EXPANDED,
  offsetAt,
  offsetOf,
  resolved,
  substitute,
  treeOf,
} from './json-tree.ts';

interface Options {
  variables: FileVariables;
  /** Options beside the file. */
  set?: string | undefined;
  /** Longer files are read item by item, if they can be. */
  cutAbove?: number;
}

/** In characters. The tree of a text takes about a hundred times as much memory. */
const CUT_ABOVE = 1_000_000;

/** Reads YAML, which includes JSON. Never throws: faults are in `faults`. */
export function readSchedulesFile(source: string, { variables, set, cutAbove = CUT_ABOVE }: Options): SchedulesFile {
  const file: SchedulesFile = {
    set: set ?? null,
    prune: false,
    entries: { limits: [], calendars: [], connections: [], notifiers: [], schedules: [] },
    faults: [],
    isBroken: false,
  };
  const seen = {
    ...{ limits: new Map(), calendars: new Map(), connections: new Map(), notifiers: new Map() },
    schedules: new Map(),
  };
  const cut = source.length > cutAbove ? cutIntoItems(source) : null;
  const root = parsed(cut?.rest ?? source, { file, variables, seen, firstLine: 1, isPiece: false });
  if (!file.isBroken) readRoot(root);
  for (const { kind, text, firstLine } of cut?.pieces ?? []) {
    const piece = parsed(text, { file, variables, seen, firstLine, isPiece: true });
    if (!file.isBroken) readItems(piece, kind, piece.document.contents);
  }
  if (file.prune && file.set === null && !file.isBroken)
    file.faults.push({ line: 1, message: 'prune needs the name of a set: `set`' });
  if (file.set !== null) file.entries.schedules = file.entries.schedules.map((one) => labelled(one, file));
  return file;
}

interface FileReading {
  file: SchedulesFile;
  document: Document;
  source: string;
  variables: FileVariables;
  lineAt: (offset: number) => number;
  expansion: { left: number };
  /** The line on which each id was first found. */
  seen: Record<Kind, Map<string, number>>;
  firstLine: number;
  isPiece: boolean;
}

/** Parses all of a file or a piece of it, and notes faults of its text. */
function parsed(
  source: string,
  { file, firstLine, ...more }: Pick<FileReading, 'file' | 'variables' | 'seen' | 'firstLine' | 'isPiece'>,
): FileReading {
  const { document, lineAt } = documentOf(source, firstLine);
  file.isBroken ||= document.errors.some(({ code }) => code !== 'DUPLICATE_KEY');
  for (const { pos, code, message } of [...document.errors, ...document.warnings]) {
    const said = code === 'DUPLICATE_KEY' ? `the name ${wordAt(source, pos[0])} is given twice` : message;
    file.faults.push({ line: lineAt(pos[0]), message: said });
  }
  return { file, firstLine, ...more, document, source, lineAt, expansion: { left: MAX_EXPANDED } };
}

function documentOf(source: string, firstLine: number) {
  const lines = new LineCounter();
  const document: Document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  return { document, lineAt: (offset: number) => lines.linePos(offset).line + firstLine - 1 };
}

function readRoot(reading: FileReading): void {
  const root = reading.document.contents;
  if (!isMap(root) || root.items.length === 0) {
    faultAt(reading, root, `must be an object with some of ${FIELDS}`);
    return;
  }
  for (const { key, value } of root.items) {
    const name = keyText(key);
    if (name === 'set') readSet(reading, value);
    else if (name === 'prune') readPrune(reading, value);
    else if (isKind(name)) readList(reading, name, value, key);
    else faultAt(reading, key, `${name} is not a field of the file; it has ${FIELDS}`);
  }
}

const FIELDS = ['set', 'prune', ...KINDS].join(', ');

function readPrune(reading: FileReading, node: unknown): void {
  const value = isScalar(node) ? node.value : null;
  if (typeof value === 'boolean') reading.file.prune = value;
  else faultAt(reading, node, 'prune must be true or false');
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
  readItems(reading, kind, list);
}

function readItems(reading: FileReading, kind: Kind, list: unknown): void {
  if (!isSeq(list)) return;
  const first = reading.seen[kind];
  for (const item of list.items) {
    const at = resolved(item, reading.document);
    const id = isMap(at) ? at.get('id') : null;
    if (!isMap(at)) faultAt(reading, item, `${SINGULAR[kind]}: must be an object with an id`);
    else if (typeof id !== 'string')
      faultAt(reading, item, `${SINGULAR[kind]}, /id: ${id === undefined ? 'is required' : 'must be a string'}`);
    else {
      const line = reading.lineAt(offsetAt(at, '/id', reading.document));
      const earlier = first.get(id);
      if (earlier !== undefined)
        reading.file.faults.push({ line, message: `${SINGULAR[kind]} ${id} is also on line ${earlier}` });
      else reading.file.entries[kind].push(entryOf(reading, kind, id, at));
      first.set(id, earlier ?? line);
    }
  }
}

function entryOf(reading: FileReading, kind: Kind, id: string, map: YAMLMap): FileEntry {
  const { document, source, variables, lineAt, file, expansion } = reading;
  const fault = (path: string, message: string) =>
    file.faults.push({
      line: lineAt(offsetAt(map, path, document)),
      message: `${SINGULAR[kind]} ${id}, ${path}: ${message}`,
    });
  const textAt = (text: string, path: readonly string[]) => {
    if (!isSecret(kind, path)) return text;
    const replaced = substitute(text, variables);
    for (const message of replaced.faults) fault(pointer(path), message);
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
  return { kind, id, fields: Object.fromEntries(members), payload, lineOf: linesOf(reading, map) };
}

/** The tree of a piece of the file is not kept: it is parsed again when a line is asked for. */
function linesOf({ document, source, lineAt, firstLine, isPiece }: FileReading, map: YAMLMap) {
  return isPiece ? linesOfPiece(source, firstLine) : (path: string) => lineAt(offsetAt(map, path, document));
}

/** A function of its own, so that its closure does not keep the tree alive. */
function linesOfPiece(source: string, firstLine: number) {
  return (path: string) => {
    const { document, lineAt } = documentOf(source, firstLine);
    const item = isSeq(document.contents) ? resolved(document.contents.items[0], document) : null;
    return item === null ? firstLine : lineAt(offsetAt(item, path, document));
  };
}

function labelled(entry: FileEntry, file: SchedulesFile): FileEntry {
  const labels = entry.fields['labels'] ?? {};
  // An entry that is no object: the server refuses it.
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
