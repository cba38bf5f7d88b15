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
