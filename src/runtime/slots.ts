/** Counts what is taken in all and by lane (target origin), so that a slow lane takes only its share. */
export interface Slots {
  /** Takes one slot of the lane, or answers false where the lane or the whole is full. */
  take(lane: string): boolean;
  /** Takes one whatever the caps say: for what is held already. */
  hold(lane: string): void;
  release(lane: string): void;
  /** Free slots over all lanes. */
  free(): number;
  /** Free slots of each lane that holds any, below zero where its share has shrunk; other lanes have their whole share. */
  freeByLane(): Map<string, number>;
  taken(): number;
}

export function createSlots(total: number, shareOf: (lane: string) => number): Slots {
  const byLane = new Map<string, number>();
  let taken = 0;

  function hold(lane: string): void {
    byLane.set(lane, (byLane.get(lane) ?? 0) + 1);
    taken += 1;
  }

  return {
    take: (lane) => {
      const held = byLane.get(lane) ?? 0;
      if (taken >= total || held >= shareOf(lane)) return false;
      hold(lane);
      return true;
    },
    hold,
    release: (lane) => {
      const held = byLane.get(lane) ?? 0;
      if (held <= 1) byLane.delete(lane);
      else byLane.set(lane, held - 1);
      taken -= 1;
    },
    free: () => total - taken,
    freeByLane: () => new Map([...byLane].map(([lane, held]) => [lane, shareOf(lane) - held])),
    taken: () => taken,
  };
}
