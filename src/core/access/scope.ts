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
  if (!prefixes.every(isNamePrefix) || new Set(prefixes).size < prefixes.length || prefixes.length > MAX_PREFIXES)
    return null;
  return prefixes;
}

/** Whether an id may begin with it. */
function isNamePrefix(text: string): boolean {
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
  const widest = sorted.filter((prefix) => !sorted.some((other) => other !== prefix && prefix.startsWith(other)));
  return widest.map((prefix) => ({ from: prefix, end: endOf(prefix) }));
}

/** The first text after all that begin with this: its last character is that of a name, so there is a next one. */
function endOf(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** What FIRELOCK_SCOPES says of the names that begin with this prefix. */
export interface ScopeShare {
  prefix: string;
  /** Null: as many as are asked for. */
  maxSchedules: number | null;
  maxOpenRuns: number | null;
}

/** The longest prefix first; empty: scopes have nothing of their own. */
export type ScopeShares = readonly ScopeShare[];

export const NO_SHARES: ScopeShares = [];

/** The scope of all names that begin with no prefix of FIRELOCK_SCOPES. */
export const REST: ScopeShare = { prefix: '', maxSchedules: null, maxOpenRuns: null };

/** A batch of planning asks for each of them. */
const MAX_SCOPES = 64;
const MAX_CAP = 1_000_000_000;

export const SHARES_RULE =
  `at most ${MAX_SCOPES} of prefix, or prefix:schedules:runs with caps, separated by commas, such as billing.,ops.:5000:20000: ` +
  `caps from 1 to ${MAX_CAP}; a cap that is left empty is none`;

/** Reads the value of FIRELOCK_SCOPES; `faults` names each entry that breaks SHARES_RULE. */
export function parseScopeShares(text: string): [shares: ScopeShares, faults: { entry: string; message: string }[]] {
  const entries = text.split(',').map((entry) => entry.trim());
  const read = entries.map((entry) => ({ entry, ...parseShare(entry) }));
  const faults = read.flatMap(({ entry, fault }) => (fault === undefined ? [] : [{ entry, message: fault }]));
  const shares = read.flatMap(({ share }) => share ?? []);
  const seen = new Set<string>();
  for (const { prefix } of shares) {
    if (seen.has(prefix)) faults.push({ entry: prefix, message: 'is named twice' });
    seen.add(prefix);
  }
  if (shares.length > MAX_SCOPES)
    faults.push({ entry: `${shares.length} scopes`, message: `are more than ${MAX_SCOPES}` });
  return [shares.sort((a, b) => b.prefix.length - a.prefix.length), faults];
}

function parseShare(entry: string): { share?: ScopeShare; fault?: string } {
  const [prefix = '', ...caps] = entry.split(':');
  if (!isNamePrefix(prefix)) return { fault: 'does not begin with a prefix of names' };
  if (caps.length !== 0 && caps.length !== 2)
    return { fault: 'is not prefix or prefix:schedules:runs: scopes have caps, and no weights' };
  const [maxSchedules = null, maxOpenRuns = null] = caps.map(capOf);
  if (Number.isNaN(maxSchedules) || Number.isNaN(maxOpenRuns))
    return { fault: `has a cap that is not a number from 1 to ${MAX_CAP}` };
  return { share: { prefix, maxSchedules, maxOpenRuns } };
}

function capOf(text: string): number | null {
  if (text === '') return null;
  return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= MAX_CAP ? Number(text) : NaN;
}

/** The scope of a schedule by its id, and of a one-off run by its key: the one of the longest prefix. */
export function shareOf(shares: ScopeShares, name: string | null): ScopeShare {
  if (name === null) return REST;
  return shares.find(({ prefix }) => name.startsWith(prefix)) ?? REST;
}
