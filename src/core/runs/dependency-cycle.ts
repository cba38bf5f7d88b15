/**
 * A cycle among items that depend on each other by name: the names along it, with the first one again at the end; null:
 * there is none. Names that are not among the items are ignored. No recursion: a chain may be as long as a call has
 * items.
 */
export function findCycle(
  items: readonly { ref: string | null; dependsOn: readonly string[] }[],
): string[] | null {
  const dependsOn = new Map(
    items.flatMap(({ ref, ...item }) => (ref === null ? [] : [[ref, item.dependsOn]])),
  );
  /** Everything reachable from this item has been visited, and leads into no cycle. */
  const clear = new Set<string>();
  for (const start of dependsOn.keys()) {
    const path: { ref: string; next: number }[] = [];
    const onPath = new Set<string>();
    const enter = (ref: string) => {
      path.push({ ref, next: 0 });
      onPath.add(ref);
    };
    if (!clear.has(start)) enter(start);
    for (let at = path.at(-1); at !== undefined; at = path.at(-1)) {
      const other = dependsOn.get(at.ref)?.[at.next];
      at.next += 1;
      if (other === undefined) {
        path.pop();
        onPath.delete(at.ref);
        clear.add(at.ref);
      } else if (onPath.has(other)) {
        const refs = path.map(({ ref }) => ref);
        return [...refs.slice(refs.indexOf(other)), other];
      } else if (dependsOn.has(other) && !clear.has(other)) {
        enter(other);
      }
    }
  }
  return null;
}
