/** More reads at once would wait in the daemon for a connection to its database, and make other callers wait there, too. */
const MAX_READS = 2;

let underWay = 0;
const waiting: (() => void)[] = [];

/** Starts a read as soon as fewer than two others of this page are under way; in the order in which they were asked for. */
export async function inTurn<T>(read: () => Promise<T>): Promise<T> {
  if (underWay < MAX_READS) underWay += 1;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await read();
  } finally {
    // The next one takes this one's place.
    const next = waiting.shift();
    if (next) next();
    else underWay -= 1;
  }
}
