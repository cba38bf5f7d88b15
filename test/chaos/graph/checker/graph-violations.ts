/** Kinds of broken promises of a graph campaign; each must be 0 after any. */
export const GRAPH_VIOLATIONS = {
  stuck: 'never reached a terminal status',
  lost: 'accepted, and not there',
  phantom: 'a run or a delivery that was not asked for, or two runs for one key',
  endedTwice: 'seen in one terminal status, and later in another',
  tooEarly: 'started before all that it depends on had ended',
  startedInVain: 'started, or not failed for it, although what it needs did not succeed',
  wrongEnd: 'ended otherwise than its receiver or worker said',
  wrongOutcome: 'told another outcome of what it depends on than there is',
  twoWorkers: 'with two workers at once, under leases that both held',
  leaseBroken: 'a worker refused while its lease held',
  staleWord: 'the word of an attempt taken although a later one had begun, or of two attempts',
  afterItsEnd: 'started again after its end was acknowledged',
  sameAttemptTwice: 'one attempt that arrived twice',
  unexplainedRepeat: 'sent again although it was acknowledged and nothing happened to its sender',
  backstop: 'released by recovery, and not by the end of what it waited for',
  uncounted: 'a dependency that has ended and was not counted',
  refusal: 'a request that should be taken was refused',
  liveness: 'an instance that does not work after the last start',
} as const;
export type GraphViolation = keyof typeof GRAPH_VIOLATIONS;

export type GraphFound = Record<GraphViolation, { count: number; examples: string[] }>;

/** Collects violations, with the first few of each kind in words. */
export interface GraphReport {
  add(violation: GraphViolation, example: string, count?: number): void;
  readonly found: GraphFound;
}

const MAX_EXAMPLES = 5;

export function createGraphReport(): GraphReport {
  const found = Object.fromEntries(
    Object.keys(GRAPH_VIOLATIONS).map((violation) => [violation, { count: 0, examples: [] }]),
  ) as unknown as GraphFound;
  return {
    found,
    add: (violation, example, count = 1) => {
      const entry = found[violation];
      entry.count += count;
      if (entry.examples.length < MAX_EXAMPLES) entry.examples.push(example);
    },
  };
}
