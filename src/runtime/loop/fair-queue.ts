interface OfLane {
  lane: string;
}

/** What waits, by lane (target origin): lanes take turns, and one with very much that waits gives up its own, not that of others. */
export class FairQueue<T extends OfLane> {
  readonly #most: number;
  readonly #mostOfLane: number;
  /** The lane whose turn is next comes first. */
  readonly #byLane = new Map<string, T[]>();
  #size = 0;

  constructor({ most, mostOfLane }: { most: number; mostOfLane: number }) {
    this.#most = most;
    this.#mostOfLane = mostOfLane;
  }

  /** Answers what there is no room for: it, or the newest of the lane that has most. */
  add(one: T): T | null {
    const own = this.#byLane.get(one.lane) ?? [];
    if (own.length >= this.#mostOfLane) return one;
    let dropped: T | null = null;
    if (this.#size >= this.#most) {
      const longest = this.#longest();
      if (longest.length <= own.length + 1) return one;
      dropped = longest.pop() ?? null;
      this.#size -= 1;
    }
    own.push(one);
    this.#size += 1;
    this.#byLane.set(one.lane, own);
    return dropped;
  }

  /** The oldest of the first lane that may go; that lane is last from now on. */
  takeFirst(mayGo: (lane: string) => boolean): T | null {
    for (const [lane, own] of this.#byLane) {
      if (!mayGo(lane)) continue;
      const one = own.shift();
      this.#byLane.delete(lane);
      if (own.length > 0) this.#byLane.set(lane, own);
      if (one) this.#size -= 1;
      return one ?? null;
    }
    return null;
  }

  takeAll(): T[] {
    const all = [...this.#byLane.values()].flat();
    this.#byLane.clear();
    this.#size = 0;
    return all;
  }

  #longest(): T[] {
    let longest: T[] = [];
    for (const own of this.#byLane.values()) if (own.length > longest.length) longest = own;
    return longest;
  }
}

/** Counts the slots in use in all and by lane (target origin), so that a slow lane takes only its share. */
interface Slots {
  /** Takes one slot of the lane; answers false if the lane or the whole is full. */
  take(lane: string): boolean;
  release(lane: string): void;
  /** Free slots over all lanes. */
  free(): number;
}

export function createSlots(total: number, perLane: number): Slots {
  const byLane = new Map<string, number>();
  let taken = 0;

  return {
    take: (lane) => {
      const own = byLane.get(lane) ?? 0;
      if (taken >= total || own >= perLane) return false;
      byLane.set(lane, own + 1);
      taken += 1;
      return true;
    },
    release: (lane) => {
      const own = byLane.get(lane) ?? 0;
      if (own <= 1) byLane.delete(lane);
      else byLane.set(lane, own - 1);
      taken -= 1;
    },
    free: () => total - taken,
  };
}
