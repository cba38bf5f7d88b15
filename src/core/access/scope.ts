/**
 * Prefixes of names, each at most once; null: all names. A caller with a scope sees and changes only what has a name that
 * begins with one of them: a schedule, calendar, limit, connection, notifier or queue by its id, a run by its schedule's
 * id or by its own key, a message by its notifier.
 */
export type Scope = readonly string[] | null;

/** Names that begin with this may be read and named by everybody, and changed by callers whose scope says so. */
const SHARED = 'shared.';
/** Each is one more range of an index for every list. */
const MAX_PREFIXES = 32;

export const SCOPE_RULE =
  `1 to ${MAX_PREFIXES} different prefixes of names, separated by "|", such as billing.|ops.: each has 1 to 128 letters ` +
  '(A-Z, a-z), digits, dots, dashes and underscores, and begins with a letter or digit';

/** Reads `billing.|ops.`; null: it breaks SCOPE_RULE. */
export function parseScope(text: string): readonly string[] | null {
  const prefixes = text.split('|');
  if (
    !prefixes.every(isNamePrefix) ||
    new Set(prefixes).size < prefixes.length ||
    prefixes.length > MAX_PREFIXES
  )
    return null;
  return prefixes;
}

/** Whether an id may begin with it. */
export function isNamePrefix(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text);
}

export function scopeText(prefixes: readonly string[]): string {
  return prefixes.join('|');
}

/** What is wrong with a name that a caller of this scope may not use. */
export function beyondScope(scope: Scope): string {
  return `is outside your scope (${scopeText(scope ?? [])})`;
}

/** Whether a caller of this scope may change what has this name. */
export function owns(scope: Scope, name: string): boolean {
  return scope === null || scope.some((prefix) => name.startsWith(prefix));
}

/** Whether a caller of this scope may read it, and name it in a request; of a prefix: all that begins with it. */
export function sees(scope: Scope, name: string): boolean {
  return owns(scope, name) || name.startsWith(SHARED);
}

/** Prefixes of all names that a caller with a scope sees. */
export function seenPrefixes(prefixes: readonly string[]): string[] {
  return [...prefixes, SHARED];
}

/** Names from `from` on and before `end`, in the order of code points. */
export interface NameRange {
  from: string;
  end: string;
}

/** Whether all names of the range come before this one. */
export function isAfterRange(name: string, { end }: NameRange): boolean {
  return name >= end;
}

/** The ranges of these prefixes, in order; none overlaps another. */
export function prefixRanges(prefixes: readonly string[]): NameRange[] {
  const sorted = [...new Set(prefixes)].sort();
  const widest = sorted.filter(
    (prefix) => !sorted.some((other) => other !== prefix && prefix.startsWith(other)),
  );
  return widest.map((prefix) => ({ from: prefix, end: endOf(prefix) }));
}

/** The first text after all that begin with this: its last character is that of a name, so there is a next one. */
function endOf(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
