/** JSON trees, as requests are made of them. */
export type Tree = Readonly<Record<string, unknown>>;

/** The value at a path, in otherwise empty objects. */
export function treeAt([first = '', ...rest]: readonly string[], value: unknown): Tree {
  return Object.fromEntries([[first, rest.length === 0 ? value : treeAt(rest, value)]]);
}

/** `patch` over `base`, object by object; `null` is a value like any other, for the server to understand. */
export function over(base: Tree, patch: Tree): Tree {
  const merged = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(patch)) {
    const before = merged.get(name);
    merged.set(name, isTree(before) && isTree(value) ? over(before, value) : value);
  }
  return Object.fromEntries(merged);
}

/** RFC 7396: the same, but `null` takes away. */
export function patched(base: unknown, patch: Tree): Tree {
  const merged = new Map(isTree(base) ? Object.entries(base) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, isTree(value) ? patched(merged.get(name), value) : value);
  }
  return Object.fromEntries(merged);
}

/** A plain object: neither a list, nor a number that keeps its digits, nor JSON text. */
export function isTree(value: unknown): value is Tree {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !JSON.isRawJSON(value) &&
    Object.getPrototypeOf(value) === Object.prototype
  );
}
