/** `A`, `A and B`, `A, B, and C`. */
export function listed(items: readonly (string | number)[], word = 'and'): string {
  if (items.length < 3) return items.join(` ${word} `);
  return `${items.slice(0, -1).join(', ')}, ${word} ${items.at(-1)}`;
}
