import { type Bar, atLeast, atMost } from './scenario.ts';
import { medianOrNull } from './support/measures/statistics.ts';

/** What was measured in one round, by the contestant's name. */
export type Round<T> = Record<string, T>;

/** A figure to compare; null where it is not known. */
type Figure<T> = (measured: T) => number | null;

/** The names in the order in which they were entered. */
export function namesOf(rounds: readonly Round<unknown>[]): string[] {
  return Object.keys(rounds[0] ?? {});
}

/** What one has in every round. */
export function allOf<T>(rounds: readonly Round<T>[], name: string): T[] {
  return rounds.flatMap((round) => round[name] ?? []);
}

/** Null where it is not known in every round. */
export function medianFigure<T>(rounds: readonly Round<T>[], name: string, figure: Figure<T>): number | null {
  return medianOrNull(allOf(rounds, name).map(figure));
}

/** Within each round first, so that a slow moment of the machine weighs on both sides; then their median. */
function ratioOf<T>(rounds: readonly Round<T>[], ours: string, theirs: string, figure: Figure<T>): number | null {
  const quotients = rounds.map(({ [ours]: our, [theirs]: their }) => {
    const [one, other] = [our && figure(our), their && figure(their)];
    return one === null || one === undefined || other === null || other === undefined ? null : one / other;
  });
  return medianOrNull(quotients);
}

interface RatioBar<T> {
  what: string;
  ours: string;
  theirs: string;
  figure: Figure<T>;
  atMost?: number;
  atLeast?: number;
  /** What it is to reach in the end. */
  aim?: number;
}

/** None where one of the two did not take part or its figure is not known. */
export function ratioBar<T>(rounds: readonly Round<T>[], bar: RatioBar<T>): Bar[] {
  const { ours, theirs, figure } = bar;
  const ratio = ratioOf(rounds, ours, theirs, figure);
  if (ratio === null) return [];
  const what = `${bar.what} of ${ours} / ${theirs}`;
  return [
    ...(bar.atMost === undefined ? [] : [atMost(what, ratio, '×', bar.atMost, bar.aim)]),
    ...(bar.atLeast === undefined ? [] : [atLeast(what, ratio, '×', bar.atLeast, bar.aim)]),
  ];
}

/** A ratio that is told without being a bar. */
export function ratioNote<T>(
  rounds: readonly Round<T>[],
  bar: Omit<RatioBar<T>, 'atMost' | 'atLeast' | 'aim'>,
): string[] {
  const ratio = ratioOf(rounds, bar.ours, bar.theirs, bar.figure);
  return ratio === null ? [] : [`${bar.what} of ${bar.ours} / ${bar.theirs}: ${ratio.toFixed(2)} ×`];
}
