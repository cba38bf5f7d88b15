/** At least this many neighbours are written as `3 through 5`. */
export const MIN_RUN = 3;

/** Divides a sorted set into runs of neighbours. */
export function runsOf(set: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const value of set) {
    const run = runs.at(-1);
    if (run?.at(-1) === value - 1) run.push(value);
    else runs.push([value]);
  }
  return runs;
}

/** The runs as items of a list. */
export function runItems(runs: readonly (readonly number[])[], nameOf: (value: number) => string): string[] {
  return runs.flatMap((run) => {
    const names = run.map(nameOf);
    return run.length < MIN_RUN ? names : [`${names[0]} through ${names.at(-1)}`];
  });
}

/** The step that leads through a whole sorted set; null: there is none. */
export function stepOf(set: readonly number[]): number | null {
  const [first = 0, second = 0] = set;
  const step = second - first;
  return set.length > 1 && set.every((value, index) => value === first + index * step) ? step : null;
}
