/**
 * A function that finds the first number at or after one (null: there is none), and that remembers its last answer: what does not come
 * for years is searched once, not for each question on the way.
 */
export function remembering(firstFrom: (from: number) => number | null): (from: number) => number | null {
  let asked = Infinity;
  let answer: number | null = null;
  return (from) => {
    if (from >= asked && (answer === null || from <= answer)) return answer;
    // In this order: after a search that throws, nothing wrong is remembered.
    answer = firstFrom(from);
    asked = from;
    return answer;
  };
}

/** The least of what is there; null: nothing is. */
export function leastOf<Item>(items: readonly Item[], numberOf: (item: Item) => number | null): number | null {
  let least: number | null = null;
  for (const item of items) {
    const number = numberOf(item);
    if (number !== null && (least === null || number < least)) least = number;
  }
  return least;
}
