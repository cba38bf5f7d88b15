/** An item that can stand in a line, in one at a time. */
export interface LineMember<T extends LineMember<T>> {
  line: Line<T> | null;
  before: T | null;
  behind: T | null;
}

/** First in, first out, or out from any place, each in constant time. */
export class Line<T extends LineMember<T>> {
  #first: T | null = null;
  #last: T | null = null;

  get first(): T | null {
    return this.#first;
  }

  push(one: T): void {
    one.line = this;
    one.before = this.#last;
    one.behind = null;
    if (this.#last) this.#last.behind = one;
    else this.#first = one;
    this.#last = one;
  }

  remove(one: T): void {
    if (one.before) one.before.behind = one.behind;
    else this.#first = one.behind;
    if (one.behind) one.behind.before = one.before;
    else this.#last = one.before;
    one.line = null;
    one.before = null;
    one.behind = null;
  }
}
