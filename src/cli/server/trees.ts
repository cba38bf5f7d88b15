/** JSON trees, from which requests are made. */
export type Tree = Readonly<Record<string, unknown>>;

/** The value at a path, in objects that are otherwise empty. */
export function treeAt([first = '', ...rest]: readonly string[], value: unknown): Tree {
  return Object.fromEntries([[first, rest.length === 0 ? value : treeAt(rest, value)]]);
}

/** `patch` over `base`, object by object; `null` is an ordinary value here, which the server interprets. */
export function over(base: Tree, patch: Tree): Tree {
  const merged = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(patch)) {
    const before = merged.get(name);
    merged.set(name, isTree(before) && isTree(value) ? over(before, value) : value);
  }
  return Object.fromEntries(merged);
}

/** RFC 7396: the same, but `null` removes a member. */
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
