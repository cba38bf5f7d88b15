import { useState } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type { Load } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { type Polled, usePoll } from '../../state/poll.ts';

/** So many schedules in one call, which so takes a moment however many there are. */
const AT_ONCE = 2_500;
const EVERY_MS = 300_000;

interface Period {
  /** Unix ms. */
  from: number;
  to: number;
  bucketSeconds: number;
  /** So many of the schedules that fire most. */
  top?: number;
}

export interface Counted extends Required<Pick<Load, 'items' | 'schedules' | 'firing'>> {
  from: number;
  /** There are more schedules to count. */
  isPart: boolean;
}

/** All fires of a period, part by part: what is counted so far is answered until all of it is. */
export function useCount(key: string, periodAt: (now: number) => Period): Polled<Counted> {
  const [soFar, setSoFar] = useState<Counted>();
  const polled = usePoll(key, (signal) => countAll(periodAt(Date.now()), signal, setSoFar), {
    everyMs: EVERY_MS,
  });
  return { ...polled, data: polled.data ?? soFar };
}

async function countAll(
  { from, to, bucketSeconds, top }: Period,
  signal: AbortSignal,
  tell: (soFar: Counted) => void,
): Promise<Counted> {
  const [begin, end] = [from, to].map((at) => new Date(at).toISOString());
  const fires = new Map<string, number>();
  let counted: Counted = { from, isPart: true, items: [], schedules: 0, firing: [] };
  for (let cursor: string | undefined; counted.isPart;) {
    const query = { from: begin, to: end, bucketSeconds, top, maxSchedules: AT_ONCE, cursor };
    const { items, schedules, firing = [], nextCursor } = await get<Load>('/load', query, signal);
    for (const one of items) fires.set(one.at, (fires.get(one.at) ?? 0) + one.fires);
    counted = {
      from,
      isPart: Boolean(nextCursor),
      items: [...fires].sort().map(([at, sum]) => ({ at, fires: sum })),
      schedules: counted.schedules + schedules,
      firing: [...counted.firing, ...firing].sort((a, b) => b.fires - a.fires).slice(0, top),
    };
    cursor = nextCursor ?? undefined;
    if (counted.isPart) tell(counted);
  }
  return counted;
}
