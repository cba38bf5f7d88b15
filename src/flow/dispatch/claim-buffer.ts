import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { LaneClaim, type ClaimState, type LaneBook } from './lane.ts';

/**
 * Every claim of this process, until its outcome is written or it is given up: the runs in flight. Of one run it acts on one claim at a
 * time; a later one waits for the end of the earlier.
 */
export class ClaimBuffer {
  readonly #book: LaneBook;
  /** For each run, the claim that is acted on; later claims of the run follow it in their order. */
  readonly #claims = new Map<string, LaneClaim>();

  constructor(book: LaneBook) {
    this.#book = book;
  }

  /**
   * Adds a claim, for which room was taken. It waits if an earlier claim of the run is still acted on, for example when
   * a settlement's answer was lost.
   */
  put(run: ClaimedRun): LaneClaim {
    const claim = new LaneClaim(run, this.#book.of(run.lane));
    const earlier = this.#claims.get(run.id);
    if (earlier) {
      claim.state = 'awaitsEarlier';
      lastOf(earlier).later = claim;
    } else {
      this.#claims.set(run.id, claim);
    }
    return claim;
  }

  /** Removes a claim and frees its room; answers the later claim that waited for it and is acted on from now. */
  drop(claim: LaneClaim): LaneClaim | null {
    if (claim.state === 'gone') return null;
    this.#book.addClaims(claim.lane, -1);
    const isLater = claim.state === 'awaitsEarlier';
    claim.state = 'gone';
    const { id } = claim.run;
    const first = this.#claims.get(id);
    if (isLater) {
      const before = first && earlierOf(first, claim);
      if (before) before.later = claim.later;
      return null;
    }
    const { later } = claim;
    if (!later) {
      this.#claims.delete(id);
      return null;
    }
    // The earlier attempt may just have settled the run.
    later.run = { ...later.run, confirm: true };
    later.state = 'awaitsDefinition';
    this.#claims.set(id, later);
    return later;
  }

  hasClaim(runId: string, attempt: number): boolean {
    for (let claim = this.#claims.get(runId); claim; claim = claim.later ?? undefined) {
      if (claim.run.attempt === attempt) return true;
    }
    return false;
  }

  inState(state: ClaimState): LaneClaim[] {
    const found: LaneClaim[] = [];
    for (const first of this.#claims.values()) {
      for (let claim: LaneClaim | null = first; claim; claim = claim.later)
        if (claim.state === state) found.push(claim);
    }
    return found;
  }
}

function lastOf(claim: LaneClaim): LaneClaim {
  let last = claim;
  while (last.later) last = last.later;
  return last;
}

function earlierOf(first: LaneClaim, claim: LaneClaim): LaneClaim | null {
  let earlier: LaneClaim | null = first;
  while (earlier && earlier.later !== claim) earlier = earlier.later;
  return earlier;
}
