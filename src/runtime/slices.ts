/** Does work that comes in short steps, with everything else of the process in between. */
export async function inSlices(steps: Iterator<void, void, void>): Promise<void> {
  while (steps.next().done !== true) await othersTurn();
}

/**
 * Resolves when everything else had its turn. However many wait, one of them goes on in a turn of the event loop: the steps of
 * many at once do not add up to a long one.
 */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(nextOne);
  });
}

const waiting: (() => void)[] = [];

function nextOne(): void {
  // Behind what it wakes: that it waits again comes after the others.
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(nextOne);
}
