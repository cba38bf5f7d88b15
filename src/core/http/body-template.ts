import { isJson, parseKeepingDigits, pointerSteps, valueAt } from '../json-text.ts';
import type { Parent } from '../runs/parent.ts';
import type { Dependency, RunTrigger } from '../runs/run.ts';
import type { BodyTemplate } from '../schedules/schedule.ts';
import {
  NEVER_CLOSED,
  TEMPLATE_NAMES,
  type TemplateValues,
  isNeverClosed,
  isTemplateName,
  splitTemplate,
  templateValue,
} from './template.ts';

/** What the placeholders of a body are filled in from. */
export interface BodyValues extends TemplateValues {
  trigger: RunTrigger;
  /** JSON text; null: there is none. */
  payload: string | null;
  dependencies: readonly Dependency[];
  parent: Parent | null;
}

/** The text of a template in turn with its placeholders, each with the way in which its value is written there. */
export type CompiledBody = readonly (string | Placeholder)[];

interface Placeholder {
  read: (values: Filling) => Value;
  write: (value: Value) => string;
}

/** A value as JSON, and as the text that stands for it elsewhere: a string's own characters, otherwise the JSON. */
interface Value {
  json: string;
  text: string;
}

const NAMES = [...TEMPLATE_NAMES, 'trigger', 'payload', 'payload/…', 'dependencies', 'parent/…', 'secret/NAME'];
export const BODY_PLACEHOLDERS = NAMES.map((name) => `{{${name}}}`).join(' ');

/** A body of more bytes is not sent: a few kilobytes of placeholders, or a thousand dependencies, could ask for any amount of memory. */
const MAX_BODY_BYTES = 1024 * 1024;

/** A body that is not built any further. */
export class BodyTooLong extends Error {
  override readonly message = 'the body would be longer than 1 MiB';
}

/**
 * A value cannot leave its place, whatever it contains. In JSON, a placeholder inside quotes becomes escaped text, and one
 * outside of them a whole JSON value in a place where any value may stand; in a form, each is percent-encoded. Elsewhere a
 * value is inserted as text. Answers the message of a fault instead if the template has one.
 */
export function compileBody({
  template,
  contentType,
  secrets = {},
}: BodyTemplate<unknown>): CompiledBody | { fault: string } {
  const type = readContentType(contentType);
  if ('fault' in type) return type;
  // Even pieces are text, odd ones names of placeholders.
  const pieces = splitTemplate(template);
  const unknown = pieces.filter((piece, index) => index % 2 === 1 && readerOf(piece, secrets) === null);
  if (unknown.length > 0) {
    const named = unknown.slice(0, 5).map((name) => `{{${name}}}`);
    return { fault: `has an unknown placeholder ${named.join(' ')}; known: ${BODY_PLACEHOLDERS}` };
  }
  if (isNeverClosed(template)) return { fault: NEVER_CLOSED };
  const compiled = (writerAt: (index: number) => Placeholder['write']) =>
    pieces.flatMap<CompiledBody[number]>((piece, index) => {
      const read = index % 2 === 1 ? readerOf(piece, secrets) : null;
      if (read === null) return piece === '' ? [] : [piece];
      return [{ read, write: writerAt(index) }];
    });
  if (type.encoding !== 'json') return compiled(() => (type.encoding === 'form' ? inForm : inText));
  const places = placesInJson(pieces);
  const sample = pieces.map((piece, index) => (index % 2 === 0 ? piece : SAMPLES[places[index] ?? 'wrong']));
  if (Object.values(places).includes('wrong') || !isJson(sample.join(''))) return { fault: NOT_JSON };
  return compiled((index) => (places[index] === 'quoted' ? inQuotes : asValue));
}

/** @throws BodyTooLong */
export function renderBody(body: CompiledBody, values: BodyValues): string {
  const filling = new Filling(values);
  let text = '';
  for (const part of body) {
    text += typeof part === 'string' ? part : part.write(part.read(filling));
    if (text.length > MAX_BODY_BYTES) throw new BodyTooLong();
  }
  return boundedBody(text);
}

/** @throws BodyTooLong */
export function boundedBody(text: string): string {
  if (text.length * MOST_BYTES_OF_UNIT > MAX_BODY_BYTES && encoder.encode(text).length > MAX_BODY_BYTES)
    throw new BodyTooLong();
  return text;
}

/** In UTF-8, of a unit of UTF-16. */
const MOST_BYTES_OF_UNIT = 3;
/** Not Buffer: the dashboard shows bodies too. */
const encoder = new TextEncoder();

/** Whether no run of this target with this payload can be sent, whatever else there is to fill in. */
export function isTooLongWith(target: object, payload: string | null): boolean {
  const body = 'body' in target && typeof target.body === 'object' ? target.body : null;
  const compiled = body && compileBody(body as BodyTemplate);
  if (compiled === null || 'fault' in compiled) return false;
  try {
    renderBody(compiled, { ...SHORTEST, payload });
    return false;
  } catch (error) {
    if (error instanceof BodyTooLong) return true;
    throw error;
  }
}

const SHORTEST: BodyValues = {
  ...{ runId: '', runName: '', scheduleId: null, scheduledFor: 0, attempt: 1, trigger: 'api' },
  ...{ payload: null, dependencies: [], parent: null },
};

/** How values are written into a body of this type; or what is wrong with the type. */
export function readContentType(contentType: string): { encoding: 'json' | 'form' | 'text' } | { fault: string } {
  const [, type = '', parameters = ''] = MEDIA_TYPE.exec(contentType) ?? [];
  if (type === '') return { fault: 'must be a media type, such as application/json' };
  const charset = CHARSET.exec(parameters)?.[1];
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8')
    return { fault: 'must not have another charset than utf-8, in which the body is sent' };
  const essence = type.toLowerCase();
  if (essence.endsWith('/json') || essence.endsWith('+json')) return { encoding: 'json' };
  return { encoding: essence === 'application/x-www-form-urlencoded' ? 'form' : 'text' };
}

/** RFC 9110, 8.3.1. */
const MEDIA_TYPE =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)((?:[ \t]*;[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"[ !#-[\]-~]*"))*)$/;
const CHARSET = /;[ \t]*charset="?([^";]*)"?/i;

const NOT_JSON =
  'is not JSON once its placeholders are filled in: each stands inside a string, and not after a backslash, or is a whole value by itself';

type Place = 'quoted' | 'value' | 'wrong';

/**
 * Any escaped text is right where `x` is: after a backslash it is not. Any JSON value is right where `null` is, if it
 * cannot join with what stands beside it.
 */
const SAMPLES: Record<Place, string> = { quoted: 'x', value: 'null', wrong: '' };

/** By the index of the piece. */
function placesInJson(pieces: readonly string[]): Record<number, Place> {
  const places: Record<number, Place> = {};
  let inString = false;
  pieces.forEach((piece, index) => {
    if (index % 2 === 0) {
      inString = endsInString(piece, inString);
    } else if (inString) {
      places[index] = 'quoted';
    } else {
      const isValue = /(?:^|[[,:])\s*$/.test(before(pieces, index)) && /^\s*(?:$|[\],}])/.test(after(pieces, index));
      places[index] = isValue ? 'value' : 'wrong';
    }
  });
  return places;
}

/** A placeholder beside it counts as a character that no value may touch. */
function before(pieces: readonly string[], index: number): string {
  return (index > 1 ? '"' : '') + (pieces[index - 1] ?? '');
}

function after(pieces: readonly string[], index: number): string {
  return (pieces[index + 1] ?? '') + (index + 2 < pieces.length ? '"' : '');
}

function endsInString(text: string, beginsInString: boolean): boolean {
  let inString = beginsInString;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === '"') inString = !inString;
    else if (character === '\\' && inString) index += 1;
  }
  return inString;
}

const asValue = ({ json }: Value): string => json;
const inQuotes = ({ text }: Value): string => JSON.stringify(text).slice(1, -1);
const inForm = ({ text }: Value): string => encodeURIComponent(text.toWellFormed());
const inText = ({ text }: Value): string => text.toWellFormed();

/** Null: the placeholder is unknown. */
function readerOf(name: string, secrets: Readonly<Record<string, unknown>>): Placeholder['read'] | null {
  if (name === 'attempt') return ({ values }) => valueOfTree(values.attempt);
  if (isTemplateName(name)) return ({ values }) => valueOfTree(templateValue(name, values));
  if (name === 'trigger') return ({ values }) => valueOfTree(values.trigger);
  if (name === 'payload') return ({ values }) => valueOfJson(values.payload ?? 'null');
  if (name.startsWith(SECRET)) {
    const secret = name.slice(SECRET.length);
    return Object.hasOwn(secrets, secret) ? () => valueOfTree(secrets[secret]) : null;
  }
  if (name === 'dependencies') return ({ values }) => valueOfTree(values.dependencies);
  const end = name.indexOf('/');
  const steps = end === -1 ? null : pointerSteps(name.slice(end));
  if (steps === null) return null;
  if (name.startsWith('payload/')) return (filling) => valueOfTree(valueAt(filling.payload(), steps));
  if (name.startsWith('parent/')) return ({ values }) => valueOfTree(valueAt(values.parent, steps));
  return null;
}

const SECRET = 'secret/';

/** The values of one attempt; the payload is parsed once, and only if a placeholder points into it. */
class Filling {
  readonly values: BodyValues;
  #payload: { tree: unknown } | null = null;

  constructor(values: BodyValues) {
    this.values = values;
  }

  payload(): unknown {
    this.#payload ??= { tree: parseKeepingDigits(this.values.payload ?? 'null') };
    return this.#payload.tree;
  }
}

/** Undefined, where there is nothing, becomes null. */
function valueOfTree(tree: unknown): Value {
  const json = JSON.stringify(tree ?? null);
  return { json, text: typeof tree === 'string' ? tree : json };
}

function valueOfJson(json: string): Value {
  return { json, text: json.startsWith('"') ? String(JSON.parse(json)) : json };
}
