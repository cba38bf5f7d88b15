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
      const held = byLane.get(lane) ?? 0;
      if (taken >= total || held >= perLane) return false;
      byLane.set(lane, held + 1);
      taken += 1;
      return true;
    },
    release: (lane) => {
      const held = byLane.get(lane) ?? 0;
      if (held <= 1) byLane.delete(lane);
      else byLane.set(lane, held - 1);
      taken -= 1;
    },
    free: () => total - taken,
  };
}
