/** Kinds of broken promises; each must be 0 after any campaign. */
export const VIOLATIONS = {
  lost: 'due, and neither fired, nor folded into a catch-up, nor ended in a status that says why',
  phantom: 'fired though it should not: unknown, not due, paused, deleted, or under another definition',
  early: 'fired before its time',
  plannedTwice: 'two runs for one occurrence',
  unexplainedRepeat: 'delivered again although it was acknowledged and nothing happened to its sender',
  sameAttemptTwice: 'one attempt that arrived twice, though its connection did not end before an answer',
  atMostOnceRepeat: 'a schedule that wants at most one delivery got two',
  falseAccept: 'succeeded, and the receiver never said so',
  missedAccept: 'acknowledged to an undisturbed sender, and not succeeded',
  arrivedLate: 'a request that arrived after its sender had given it up',
  wrongBody: 'a request that says something else than the schedule',
  overlap: 'two runs of a schedule at once that must not be, or one held back for nothing',
  limit: 'more runs of a limit under way at once than it allows',
  catchUp: 'what was missed is not told, or not made up for, as the schedule wants it',
  wrongEnd: 'ended in a status that nothing justifies',
  stuck: 'not finished, or held, long after everything was healed',
  conservation: 'rows that do not add up',
  tables: 'a run that stands in both tables, twice in one, or in the wrong one',
  effects: 'what was to follow from an end did not, or twice, or before it',
  alerts: 'an episode without a cause or an end that justifies it, or that people were not told of once',
  commandTwice: 'a command that began while another one of its run went on, or again for one attempt',
  outlived: 'a command that went on after its worker, or after that had heard that the run is not its own',
  lease: 'given to a worker while another one still had it',
  runLog: 'a log that is not what its command printed, or lacks what was acknowledged',
  edits: 'an acknowledged edit that is gone, or a change that nobody asked for',
  liveness: 'an instance that does not work after the last heal',
} as const;
export type Violation = keyof typeof VIOLATIONS;

/** How often each kind was found, and the first few in words. */
export type Found<Kind extends string> = Record<Kind, { count: number; examples: string[] }>;

export interface ReportOf<Kind extends string> {
  add(violation: Kind, example: string, count?: number): void;
  readonly found: Found<Kind>;
}
export type Report = ReportOf<Violation>;

const MAX_EXAMPLES = 5;

export function createReport<Kind extends string>(kinds: Record<Kind, string>): ReportOf<Kind> {
  const found = Object.fromEntries(
    Object.keys(kinds).map((violation) => [violation, { count: 0, examples: [] }]),
  ) as unknown as Found<Kind>;
  return {
    found,
    add: (violation, example, count = 1) => {
      const entry = found[violation];
      entry.count += count;
      if (entry.examples.length < MAX_EXAMPLES) entry.examples.push(example);
    },
  };
}

/** As a report of a campaign has it: examples of those kinds only that there are. */
export function foundIn(found: Found<string>) {
  const all = Object.entries(found);
  return {
    ok: all.every(([, { count }]) => count === 0),
    violations: Object.fromEntries(all.map(([name, { count }]) => [name, count])),
    examples: Object.fromEntries(all.flatMap(([name, { count, examples }]) => (count > 0 ? [[name, examples]] : []))),
  };
}

export function isoText(at: number | null): string {
  return at === null || !Number.isFinite(at) ? String(at) : new Date(at).toISOString();
}
