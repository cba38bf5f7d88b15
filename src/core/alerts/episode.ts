import type { Instant } from '../instant.ts';
import type { AlertKind } from './alert.ts';

/** Something that breaks a schedule, or heals it. */
export interface Cause {
  kind: 'breaks' | 'heals';
  alertKind: AlertKind;
  at: Instant;
  /** The run that it is about; null: about none. */
  runId: string | null;
  /** For `missed`: how many fires were. */
  count: number;
}

/** What is known of a schedule under its lock. */
export interface Known {
  isEnabled: boolean;
  /** Firelock paused it, not a person. */
  isPausedByFirelock: boolean;
  /** The newest success that is known; null: none is. */
  lastSuccessAt: Instant | null;
  open: ReadonlyMap<AlertKind, OpenEpisode>;
}

export interface OpenEpisode {
  id: string;
  /** The newest moment at which it broke. */
  brokenAt: Instant;
}

/** What opened an episode, and when the schedule broke last since. */
interface Opened {
  cause: Cause;
  brokenAt: Instant;
}

/** What becomes of the episodes of one schedule. */
export interface Judged {
  opened: Opened[];
  /** Episodes that are open already broke again. */
  brokenAgain: OpenEpisode[];
  /** Episodes that are over, and since when. */
  closed: { id: string; kind: AlertKind; until: Instant }[];
}

/** Null: it is over. */
type Episode = { id: string | null; brokenAt: Instant; opening: Cause | null; until: Instant | null } | null;

/**
 * What these causes make of the episodes of a schedule. Instances may see to them in any order, so each is judged by its moment: what
 * breaks opens an episode unless one is open; what heals ends it unless it broke later. A failure before a success that is known opens
 * nothing, and of what broke and was healed among these causes nothing is left.
 */
export function judgeCauses(known: Known, causes: readonly Cause[]): Judged {
  const episodes = new Map<AlertKind, Episode>(
    [...known.open].map(([kind, open]) => [kind, { ...open, opening: null, until: null }]),
  );
  for (const cause of [...causes].sort((a, b) => a.at - b.at)) {
    const present = episodes.get(cause.alertKind) ?? null;
    episodes.set(cause.alertKind, after(known, present, cause));
  }
  return judged(known, episodes);
}

function after(known: Known, present: Episode, cause: Cause): Episode {
  const { kind, alertKind, at } = cause;
  if (kind === 'heals') {
    if (present === null || present.brokenAt > at) return present;
    // It is closed, or was never opened.
    return present.id === null ? null : { ...present, until: at };
  }
  // What breaks again while its end is not written yet goes on as the same episode.
  if (present !== null) return { ...present, brokenAt: Math.max(present.brokenAt, at), until: null };
  return mayOpen(known, alertKind, at) ? { id: null, brokenAt: at, opening: cause, until: null } : null;
}

/** While a person keeps it paused, nothing is said about it. */
function mayOpen({ isEnabled, isPausedByFirelock, lastSuccessAt }: Known, kind: AlertKind, at: Instant) {
  if (kind === 'paused') return !isEnabled;
  if (!isEnabled && !isPausedByFirelock) return false;
  return kind !== 'failed' || lastSuccessAt === null || lastSuccessAt < at;
}

function judged(known: Known, episodes: ReadonlyMap<AlertKind, Episode>): Judged {
  const result: Judged = { opened: [], brokenAgain: [], closed: [] };
  for (const [kind, episode] of episodes) {
    if (episode === null) continue;
    const { id, brokenAt, opening, until } = episode;
    if (id === null) {
      if (opening) result.opened.push({ cause: opening, brokenAt });
    } else if (until !== null) result.closed.push({ id, kind, until });
    else if (known.open.get(kind)?.brokenAt !== brokenAt) result.brokenAgain.push({ id, brokenAt });
  }
  return result;
}
