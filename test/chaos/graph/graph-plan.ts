import type { Asked, Kind, Manner } from './graph-history.ts';
import { type Random, createRandom } from '../random.ts';

interface GraphPlan {
  /** Each for one call, in this order: what a later one depends on an earlier one has asked for. */
  batches: Asked[][];
}

export interface GraphPlanOptions {
  seed: number;
  runs: number;
  /** `joins`: nothing but pairs that one run waits for: many ends at the same moment. */
  shape: 'mixed' | 'joins';
}

/** Batches that are not at random. */
const REGULAR = 6;
/** What a call may ask for. */
const MAX_ITEMS = 1_000;
const FAILING = 0.04;

export function planGraph(options: GraphPlanOptions): GraphPlan {
  const batches = batchesOf(options);
  for (const [call, batch] of batches.entries()) for (const asked of batch) asked.call = call;
  return { batches };
}

function batchesOf({ seed, runs, shape }: GraphPlanOptions): Asked[][] {
  const random = createRandom(seed, 'graph');
  const batches: Asked[][] = [];
  if (shape === 'joins') {
    for (let left = runs; left > 0; left -= 300) batches.push(joins(`j${batches.length}`, Math.min(left, 300)));
    return batches;
  }
  const wide = Math.min(MAX_ITEMS, Math.floor(runs / 10));
  batches.push(
    ...fan('wide', wide, 'fail', random),
    ...fan('tolerant', wide, 'run', random),
    chain('chain', wide, random),
    joins('pairs', wide),
  );
  let left = runs - batches.flat().length;
  while (left > 0) {
    const size = Math.min(left, Math.ceil(random.between(wide / 20, wide)));
    const earlier = batches.slice(REGULAR).at(-1) ?? [];
    batches.push(tangle(`t${batches.length}`, size, earlier, random));
    left -= size;
  }
  return batches;
}

/** One, then many, then one. A call takes a thousand, so the last of many and the one after go in a second one. */
function fan(name: string, width: number, policy: Asked['onDependencyFailure'], random: Random): Asked[][] {
  const root = quick(`${name}-root`, random);
  const many = Array.from({ length: width }, (_, n) => ({
    ...drawn(`${name}-${n}`, random),
    fate: policy === 'run' && random.chance(FAILING) ? ('failed' as const) : ('succeeded' as const),
    dependsOn: [root.ref],
  }));
  const end = {
    ...quick(`${name}-end`, random),
    dependsOn: many.map(({ ref }) => ref),
    onDependencyFailure: policy,
  };
  return [
    [root, ...many.slice(0, width - 1)],
    [...many.slice(width - 1), end],
  ];
}

/** Each after the one before. */
function chain(name: string, length: number, random: Random): Asked[] {
  const links = Array.from({ length }, (_, n) => ({
    ...quick(`${name}-${n}`, random),
    dependsOn: n === 0 ? [] : [`${name}-${n - 1}`],
  }));
  // An order of its own must not be needed.
  return links.reverse();
}

/** Each after some of those before it, and now and then of those of an earlier call. */
function tangle(name: string, size: number, earlier: readonly Asked[], random: Random): Asked[] {
  const items: Asked[] = [];
  for (let n = 0; n < size; n += 1) {
    const near = items.slice(-40);
    const dependsOn = new Set<string>();
    if (near.length > 0) {
      for (let count = Math.floor(random.between(0, 4)); count > 0; count -= 1) dependsOn.add(random.pick(near).ref);
    }
    if (earlier.length > 0 && random.chance(0.1)) dependsOn.add(random.pick(earlier).ref);
    items.push({
      ...drawn(`${name}-${n}`, random),
      dependsOn: [...dependsOn],
      onDependencyFailure: random.chance(0.5) ? 'fail' : 'run',
    });
  }
  return items;
}

/** Two that end at the same moment, in two transactions, and one that waits for both; so many times. */
function joins(name: string, size: number): Asked[] {
  return Array.from({ length: Math.ceil(size / 3) }, (_, n) => {
    const pair = [n % 2 === 0 ? 'http' : 'callback', 'callback'].map((kind, place): Asked => {
      return { ...plain(`${name}-${n}-${place}`, kind as Kind), manner: 'together' };
    });
    return [...pair, { ...plain(`${name}-${n}-end`, 'http'), dependsOn: pair.map(({ ref }) => ref) }];
  })
    .flat()
    .slice(0, size);
}

/** What is to end together. */
export function pairOf(ref: string): string {
  return ref.slice(0, ref.lastIndexOf('-'));
}

const KINDS: readonly Kind[] = ['http', 'http', 'callback', 'pull'];
/** How often each manner is drawn, in hundredths; the rest is plain. */
const MANNERS: Record<Kind, Partial<Record<Manner, number>>> = {
  http: { flaky: 15 },
  callback: { early: 20, late: 6, never: 5, beating: 10 },
  pull: { late: 8, never: 6, beating: 12 },
};

function drawn(ref: string, random: Random): Asked {
  const kind = random.pick(KINDS);
  return {
    ...plain(ref, kind),
    manner: mannerOf(kind, random),
    fate: random.chance(FAILING) ? 'failed' : 'succeeded',
  };
}

/** Where much depends on it one after the other. */
function quick(ref: string, random: Random): Asked {
  const kind = random.pick(KINDS);
  const manner = kind === 'callback' && random.chance(0.5) ? 'early' : 'plain';
  return { ...plain(ref, kind), manner };
}

function plain(ref: string, kind: Kind): Asked {
  return {
    ref,
    id: null,
    call: 0,
    outcome: 'unasked',
    kind,
    manner: 'plain',
    fate: 'succeeded',
    dependsOn: [],
    onDependencyFailure: 'fail',
  };
}

function mannerOf(kind: Kind, random: Random): Manner {
  let left = random.between(0, 100);
  for (const [manner, share] of Object.entries(MANNERS[kind])) {
    left -= share;
    if (left < 0) return manner as Manner;
  }
  return 'plain';
}
