import type { LookupAddress } from 'node:dns';
import { type Clock, systemClock } from '../clock.ts';
import { createMachineNames } from './machine-names.ts';
import { type LookUp, type Resolve, NameNotResolved } from './resolve.ts';

interface ResolverOptions {
  lookUp: LookUp;
  clock: Clock;
  /** Names that are looked up at once; one more fails. */
  mostAtOnce: number;
  failureSeconds: number;
}

/**
 * One look-up per name is under way, and callers share it. It ends early when the last caller has left. Two resolvers never
 * wait for each other.
 */
export function createResolver(options: Partial<ResolverOptions> = {}): Resolve {
  const resolver = new Resolver({
    lookUp: options.lookUp ?? createMachineNames(),
    clock: systemClock,
    mostAtOnce: 1_000,
    failureSeconds: 5,
    ...options,
  });
  return (name, signal) => resolver.resolve(name.toLowerCase(), signal);
}

const MAX_SECONDS = 30;
const MOST_KNOWN = 1_000;

interface LookupUnderWay {
  answer: Promise<readonly LookupAddress[]>;
  abort: AbortController;
  callers: number;
}

interface Known {
  answer: Promise<readonly LookupAddress[]>;
  until: number;
}

class Resolver {
  readonly #options: ResolverOptions;
  readonly #underWay = new Map<string, LookupUnderWay>();
  /** The oldest first. */
  readonly #known = new Map<string, Known>();

  constructor(options: ResolverOptions) {
    this.#options = options;
  }

  async resolve(name: string, signal?: AbortSignal): Promise<readonly LookupAddress[]> {
    signal?.throwIfAborted();
    const known = this.#known.get(name);
    if (known !== undefined && known.until > this.#options.clock.monotonic()) return known.answer;
    const lookup = this.#underWay.get(name) ?? this.#begin(name);
    lookup.callers++;
    return signal === undefined ? lookup.answer : this.#untilLeft(name, lookup, signal);
  }

  #begin(name: string): LookupUnderWay {
    const { lookUp, mostAtOnce, failureSeconds } = this.#options;
    if (this.#underWay.size >= mostAtOnce)
      throw new NameNotResolved('EAI_AGAIN', 'too many other names are being looked up');
    const abort = new AbortController();
    const found = lookUp(name, abort.signal);
    const answer = found.then(({ addresses }) => addresses);
    const lookup = { answer, abort, callers: 0 };
    this.#underWay.set(name, lookup);
    const keep = (seconds: number) => {
      if (this.#end(name, lookup)) this.#remember(name, answer, seconds);
    };
    found.then(
      ({ seconds }) => keep(Math.min(seconds, MAX_SECONDS)),
      () => keep(failureSeconds),
    );
    answer.catch(() => undefined);
    return lookup;
  }

  #untilLeft(name: string, lookup: LookupUnderWay, signal: AbortSignal): Promise<readonly LookupAddress[]> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(signal.reason as Error);
        if (--lookup.callers === 0 && this.#end(name, lookup)) lookup.abort.abort();
      };
      signal.addEventListener('abort', leave, { once: true });
      lookup.answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
    });
  }

  /** False: it had ended before. A caller that comes now begins another look-up. */
  #end(name: string, lookup: LookupUnderWay): boolean {
    return this.#underWay.get(name) === lookup && this.#underWay.delete(name);
  }

  #remember(name: string, answer: Known['answer'], seconds: number): void {
    this.#known.delete(name);
    this.#known.set(name, { answer, until: this.#options.clock.monotonic() + seconds * 1000 });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }
}
