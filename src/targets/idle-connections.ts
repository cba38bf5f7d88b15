import { Line, type LineMember } from '../runtime/loop/line.ts';

export interface Idle extends LineMember<Idle> {
  /** Called when it has been idle longest of too many. */
  dropIfIdle(): void;
}

/** The connections of all origins that carry no request: a number of targets does not decide how many stay open. */
export class IdleConnections {
  readonly #most: number;
  /** The one that has been idle longest comes first. */
  readonly #idle = new Line<Idle>();

  constructor(most: number) {
    this.#most = most;
  }

  add(connection: Idle): void {
    this.#idle.push(connection);
    if (this.#idle.length > this.#most) this.#idle.first?.dropIfIdle();
  }

  /** It is used again, or gone. */
  remove(connection: Idle): void {
    this.#idle.remove(connection);
  }
}
