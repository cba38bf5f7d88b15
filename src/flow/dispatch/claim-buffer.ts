import type { ClaimedRun } from '../../store/runs/claims/claimed-run.ts';
import { LaneClaim, type ClaimState, type LaneBook } from './lane.ts';

/**
 * Every claim of this process, until its outcome is written or it is given up: the runs in flight. Of one run it acts on one claim at a
 * time; a later one waits for the end of the earlier.
 */
export class ClaimBuffer {
  readonly #book: LaneBook;
  /** For each run, the claim that is acted on; later claims of the run follow it in their order. Free places are null. */
  readonly #claims: (LaneClaim | null)[] = [];
  readonly #free: number[] = [];
  /** Where the claim of each run is. By a number: what a `Map` had once, it may keep for long (runtime/loop/line.ts). */
  readonly #places = new Map<string, number>();

  constructor(book: LaneBook) {
    this.#book = book;
  }

  /**
   * Adds a claim, for which room was taken. It waits if an earlier claim of the run is still acted on, for example when
   * a settlement's answer was lost.
   */
  put(run: ClaimedRun): LaneClaim {
    const claim = new LaneClaim(run, this.#book.of(run.lane));
    const earlier = this.#firstOf(run.id);
    if (earlier) {
      claim.state = 'awaitsEarlier';
      lastOf(earlier).later = claim;
    } else {
      const place = this.#free.pop() ?? this.#claims.length;
      this.#places.set(run.id, place);
      this.#claims[place] = claim;
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
    if (isLater) {
      const first = this.#firstOf(id);
      const before = first && earlierOf(first, claim);
      if (before) before.later = claim.later;
      return null;
    }
    const { later } = claim;
    const place = this.#places.get(id);
    if (place === undefined) return null;
    this.#claims[place] = later;
    if (!later) {
      this.#places.delete(id);
      this.#free.push(place);
      return null;
    }
    // The earlier attempt may just have settled the run.
    later.run = { ...later.run, confirm: true };
    later.state = 'awaitsDefinition';
    return later;
  }

  hasClaim(runId: string, attempt: number): boolean {
    for (let claim = this.#firstOf(runId); claim; claim = claim.later) {
      if (claim.run.attempt === attempt) return true;
    }
    return false;
  }

  inState(state: ClaimState): LaneClaim[] {
    const found: LaneClaim[] = [];
    for (const first of this.#claims) {
      for (let claim = first; claim; claim = claim.later) if (claim.state === state) found.push(claim);
    }
    return found;
  }

  #firstOf(runId: string): LaneClaim | null {
    return this.#claims[this.#places.get(runId) ?? -1] ?? null;
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
