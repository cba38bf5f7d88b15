/** A statement costs as much as twenty of its rows; a run that ends alone does not wait. */
export const MIN_MS = 15;
/**
 * When many attempts end, many more will end soon. While they do, the processors are for what is still to be sent: nothing waits for
 * the end of a plain success to be written.
 */
const MIN_MS_IF_MANY = 250;
/** When many end and something waited for their ends: a place of a limit, schedules and runs that follow, the next fire of a schedule. */
const MIN_MS_IF_AWAITED = 50;
const MANY = 20;
/** For each slot. Until its end is written, a run takes room in which another one could be claimed; there is room for 32. */
const MANY_FOR_A_SLOT = 8;

interface WrittenSuccesses {
  count: number;
  wereAwaited: boolean;
  /** Attempts that may be under way at once. */
  slots: number;
}

/** How many ms lie at least between a pass that wrote these plain successes and the next one, from start to start. */
export function pauseAfter({ count, wereAwaited, slots }: WrittenSuccesses): number {
  if (count < MANY) return MIN_MS;
  return wereAwaited || count >= MANY_FOR_A_SLOT * slots ? MIN_MS_IF_AWAITED : MIN_MS_IF_MANY;
}
