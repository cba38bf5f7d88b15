import { isNamePrefix } from './scope.ts';

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
export function parseScopeShares(
  text: string,
): [shares: ScopeShares, faults: { entry: string; message: string }[]] {
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
