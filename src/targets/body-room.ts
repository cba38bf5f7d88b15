/** Of one attempt. */
interface BodyPlaceOptions {
  room: BodyRoom;
  /** What it shares its part of the room with. */
  origin: string;
  bytes: number;
  /** The place is its own now, until it leaves. */
  onRoom: () => void;
}

const ROOM_BYTES = 64 * 1024 * 1024;
/** Bodies up to this size are as many as there are slots. */
export const UNCOUNTED_BYTES = 4 * 1024;

/** What the body of one attempt has of the room. */
export class BodyPlace {
  readonly origin: string;
  readonly bytes: number;
  readonly #options: BodyPlaceOptions;
  #has: boolean;

  constructor(options: BodyPlaceOptions) {
    this.#options = options;
    this.origin = options.origin;
    this.bytes = options.bytes;
    this.#has = options.room.enter(this);
  }

  /** False: it waits in line. */
  get has(): boolean {
    return this.#has;
  }

  gets(): void {
    this.#has = true;
    this.#options.onRoom();
  }

  leave(): void {
    if (this.#has) this.#options.room.leave(this);
    else this.#options.room.withdraw(this);
  }
}

/**
 * The bodies of all attempts under way of an instance: one budget of bytes. An origin has no more of it than it leaves for the next
 * one, so that targets which take large bodies and do not answer leave room for others. Who finds none waits in the line of
 * its origin.
 */
export class BodyRoom {
  readonly #bytes: number;
  #free: number;
  readonly #taken = new Map<string, number>();
  readonly #lines = new Map<string, Set<BodyPlace>>();
  #isServing = false;

  constructor(bytes = ROOM_BYTES) {
    this.#bytes = bytes;
    this.#free = bytes;
  }

  /** False: it waits until it `gets` it. */
  enter(place: BodyPlace): boolean {
    const { origin } = place;
    const line = this.#lines.get(origin);
    if (line === undefined && this.#take(place)) return true;
    this.#lines.set(origin, (line ?? new Set()).add(place));
    return false;
  }

  leave({ origin, bytes }: BodyPlace): void {
    const left = (this.#taken.get(origin) ?? 0) - bytes;
    if (left > 0) this.#taken.set(origin, left);
    else this.#taken.delete(origin);
    this.#free += bytes;
    this.#serve();
  }

  withdraw(place: BodyPlace): void {
    this.#leaveLine(place, this.#lines.get(place.origin));
  }

  #take({ origin, bytes }: BodyPlace): boolean {
    const taken = (this.#taken.get(origin) ?? 0) + bytes;
    const left = this.#free - bytes;
    if (taken > left && this.#free < this.#bytes) return false;
    this.#taken.set(origin, taken);
    this.#free = left;
    return true;
  }

  /** The first of each line, in turn. One that has room may end at once, and leave: the loop goes on then. */
  #serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    for (let found = true; found;) {
      found = false;
      for (const line of [...this.#lines.values()]) {
        const [first] = line;
        if (first === undefined || !this.#take(first)) continue;
        found = true;
        this.#leaveLine(first, line);
        first.gets();
      }
    }
    this.#isServing = false;
  }

  #leaveLine(place: BodyPlace, line: Set<BodyPlace> | undefined): void {
    line?.delete(place);
    if (line?.size === 0) this.#lines.delete(place.origin);
  }
}
