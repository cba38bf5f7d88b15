import { type Poster, createPoster } from './poster.ts';
import type { Post } from './poster.ts';
import type { Lane } from './statements.ts';

/** Connections to the target: as many as keep it busy while answers are on their way. */
const CONNECTIONS = 128;

export function openTarget(url: string): Poster {
  return createPoster(url, CONNECTIONS);
}

/** One batch after the other in this lane, until it finds nothing more. */
export async function drain(lane: Lane, next: () => Promise<Post[]>, poster: Poster): Promise<void> {
  for (;;) {
    const runs = await next();
    if (runs.length === 0) return;
    await poster.postAll(runs);
    await lane.settle(runs);
  }
}
