/** Every order of these. */
export function* permutationsOf<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [index, first] of items.entries())
    for (const rest of permutationsOf(items.toSpliced(index, 1))) yield [first, ...rest];
}
