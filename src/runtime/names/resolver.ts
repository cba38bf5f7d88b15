import { hostname } from 'node:os';
import { type LookupAddress, ADDRCONFIG } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type Clock, systemClock } from '../clock.ts';
import { hasOtherSources, parseHosts, parseResolvConf, watchedFile, withoutFinalDot } from './name-files.ts';
import { type LookUp, type Resolve, hasNoAddress, NameNotResolved } from './resolve.ts';
import { searchAddresses } from './name-search.ts';

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

interface MachineOptions {
  clock: Clock;
  hostsFile: string;
  resolvConf: string;
  nsswitchConf: string;
  /** With a port if it is not 53; null: those of the machine. */
  servers: readonly string[] | null;
  askOtherSources: AskOtherSources;
  limitMs: number;
}

/** For answers whose lifetime is not known. */
const FILE_SECONDS = 1;
const OTHER_SECONDS = 5;
const LOOPBACK = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * Looks names up as programs of this machine do: in the hosts file, then by its name servers and search domains. If these
 * know no such name, the C library's other sources are asked, where the machine has some.
 */
export function createMachineNames(given: Partial<MachineOptions> = {}): LookUp {
  const options = { ...standard(), ...given };
  const hosts = watchedFile(options.hostsFile, parseHosts, options.clock);
  const ask = createAsking(options);
  return async (name, signal) => {
    const plain = withoutFinalDot(name);
    const listed = hosts().get(plain) ?? (isLocalhost(plain) ? LOOPBACK : undefined);
    if (listed !== undefined) return { addresses: listed, seconds: FILE_SECONDS };
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), options.limitMs);
    try {
      return await ask(name, AbortSignal.any([signal, limit.signal]));
    } finally {
      clearTimeout(timer);
    }
  };
}

function standard(): MachineOptions {
  return {
    clock: systemClock,
    hostsFile: isWindows ? `${process.env['SystemRoot']}\\System32\\drivers\\etc\\hosts` : '/etc/hosts',
    resolvConf: '/etc/resolv.conf',
    nsswitchConf: '/etc/nsswitch.conf',
    servers: null,
    askOtherSources: createOtherSources(),
    limitMs: 10_000,
  };
}

const isWindows = process.platform === 'win32';

/** RFC 6761, 6.3. */
function isLocalhost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

function createAsking(options: MachineOptions): LookUp {
  const { clock, askOtherSources } = options;
  const conf = watchedFile(options.resolvConf, (text) => parseResolvConf(text, hostname()), clock);
  const others = watchedFile(options.nsswitchConf, hasOtherSources, clock);
  return async (name, signal) => {
    const hasOthers = others() || HAS_OTHERS_ALWAYS;
    // Where there is mDNS, this domain is its own (RFC 6762, 3).
    if (!hasOthers || !/\.local\.?$/.test(name)) {
      const { servers, ...rest } = conf();
      const answer = await searchAddresses(name, { ...rest, servers: options.servers ?? servers }, signal);
      if (answer.kind === 'found') return answer;
      if (answer.kind !== 'none') throw new NameNotResolved('EAI_AGAIN', whyUnknown(answer, name));
    }
    const addresses = hasOthers ? await askOtherSources(name, signal).catch(() => []) : [];
    if (addresses.length === 0) throw hasNoAddress(name);
    return { addresses, seconds: OTHER_SECONDS };
  };
}

/** These have no nsswitch.conf, and sources of their own. */
const HAS_OTHERS_ALWAYS = ['darwin', 'win32'].includes(process.platform);

function whyUnknown(answer: { kind: 'silent' } | { kind: 'failed'; code: string }, name: string): string {
  if (answer.kind === 'silent') return `the name servers do not answer about ${name}`;
  return `the name servers answer ${answer.code} about ${name}`;
}

/** @throws the error of getaddrinfo, or the signal's reason */
type AskOtherSources = (name: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

/**
 * Asks by getaddrinfo, one name at a time: it occupies one of libuv's four threads until it returns, and cannot be
 * cancelled. Who waits for a turn can leave.
 */
export function createOtherSources(ask = getaddrinfo): AskOtherSources {
  let last: Promise<unknown> = Promise.resolve();
  return async (name, signal) => {
    const turn = last.then(() => {
      signal.throwIfAborted();
      return ask(name);
    });
    last = turn.catch(() => undefined);
    const settled = new AbortController();
    try {
      const left = once(signal, 'abort', { signal: settled.signal }).then(() => signal.throwIfAborted());
      await Promise.race([turn, left]);
      return await turn;
    } finally {
      settled.abort();
    }
  };
}

function getaddrinfo(name: string): Promise<readonly LookupAddress[]> {
  return lookup(name, { all: true, hints: process.platform === 'win32' ? 0 : ADDRCONFIG });
}
