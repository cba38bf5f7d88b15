import { isTree, RawJson } from '../../api/http/json/raw-json.ts';

/** A value as YAML under a name, at this depth. JSON texts stay as they are: JSON is YAML. */
export function member(name: string, value: unknown, depth: number): string {
  const indent = '  '.repeat(depth);
  if (!isTree(value) || value instanceof RawJson || Object.keys(value).length === 0)
    return `${indent}${name}: ${inline(value)}\n`;
  const below = Object.entries(value).map(([key, inner]) => member(plainOrQuoted(key), inner, depth + 1));
  return `${indent}${name}:\n${below.join('')}`;
}

/** An item of a list, as its members; the first one is its id. */
export function listItem(fields: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(fields).map(([name, value]) => member(name, value, 2));
  return `  - ${members.join('').slice(4)}`;
}

export function inComment(text: string): string {
  return text.replace(/^/gm, '# ').replace(/# $/, '');
}

function inline(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (typeof value === 'string') return plainOrQuoted(value);
  return JSON.stringify(value);
}

/** Quotes words that some version of YAML does not read as text. */
function plainOrQuoted(text: string): string {
  return /^[A-Za-z][\w./-]*$/.test(text) && !OTHERWISE.test(text) ? text : JSON.stringify(text);
}

const OTHERWISE = /^(?:true|false|yes|no|on|off|null|y|n|~|nan|inf)$/i;
