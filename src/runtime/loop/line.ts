/** An item that can stand in a line, in one at a time. */
export class LineMember<T extends LineMember<T>> {
  line: Line<T> | null = null;
  before: T | null = null;
  behind: T | null = null;
}

/**
 * First in, first out, or out from any place, each in constant time. For what comes and goes with every fire: a `Set` is copied now and
 * then, and V8 keeps what the copied one had, with all that hangs on it, until the next collection of the old generation.
 */
export class Line<T extends LineMember<T>> {
  #first: T | null = null;
  #last: T | null = null;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): T | null {
    return this.#first;
  }

  /** Those that stand in it now, the first one first. */
  all(): T[] {
    const all: T[] = [];
    for (let one = this.#first; one; one = one.behind) all.push(one);
    return all;
  }

  push(one: T): void {
    one.line = this;
    one.before = this.#last;
    one.behind = null;
    if (this.#last) this.#last.behind = one;
    else this.#first = one;
    this.#last = one;
    this.#length += 1;
  }

  remove(one: T): void {
    if (one.before) one.before.behind = one.behind;
    else this.#first = one.behind;
    if (one.behind) one.behind.before = one.before;
    else this.#last = one.before;
    one.line = null;
    one.before = null;
    one.behind = null;
    this.#length -= 1;
  }
}
