interface Idle {
  /** Called when it has been idle longest of too many. */
  dropIfIdle(): void;
}

/** The connections of all origins that carry no request: a number of targets does not decide how many stay open. */
export class IdleConnections {
  readonly #most: number;
  /** The one that has been idle longest comes first. */
  readonly #idle = new Set<Idle>();

  constructor(most: number) {
    this.#most = most;
  }

  add(connection: Idle): void {
    this.#idle.add(connection);
    const [longest] = this.#idle;
    if (this.#idle.size > this.#most) longest?.dropIfIdle();
  }

  /** It is used again, or gone. */
  remove(connection: Idle): void {
    this.#idle.delete(connection);
  }
}
