import { networkInterfaces } from 'node:os';
import { type AddressRange, addressBytes, addressRanges, DENIED_PRESETS, isInRange } from '../config/address-ranges.ts';
import { resolveDatabaseName } from '../postgres/connection/socket.ts';
import { type Resolve, addressesOf } from '../runtime/names/resolve.ts';

/** Why a target is not called: for the operator's log, never for an answer of the API. */
export class AddressBlocked extends Error {
  readonly address: string;
  readonly because: string;

  constructor(address: string, because: string) {
    super(`${address} is blocked: ${because}`);
    this.address = address;
    this.because = because;
  }
}

export interface AddressGuard {
  /**
   * Throws if one of these addresses must not be called at this port. Asks the resolver only if the port is one of the database's.
   * @throws AddressBlocked, or the resolver's error
   */
  judge(addresses: readonly string[], port: number): Promise<void>;
}

interface GuardOptions {
  denied: readonly AddressRange[];
  /** Parts of the denied ranges that may be called all the same. */
  allowed: readonly AddressRange[];
  /** The ports that this process listens on. */
  ownPorts: ReadonlySet<number>;
  /** Where the database is; the name of a unix socket begins with a slash. */
  databases: readonly { readonly name: string; readonly port: number }[];
  resolve: Resolve;
  /** The addresses of this machine. */
  localAddresses: () => readonly string[];
}

/** An option that is not given protects: without options, the default ranges are denied, without exceptions. */
export function createAddressGuard(options: Partial<GuardOptions> = {}): AddressGuard {
  return new Guard({ ...PROTECTING, ...options });
}

const PROTECTING: GuardOptions = {
  denied: addressRanges(DENIED_PRESETS.default),
  allowed: [],
  ownPorts: new Set(),
  databases: [],
  resolve: resolveDatabaseName,
  localAddresses: () =>
    Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.map(({ address }) => address)),
};

/** Addresses that lead to this machine, whatever its interfaces are. */
const SELF = addressRanges(['127.0.0.0/8', '0.0.0.0/8', '::/127']);

/** An address, as its own bytes and the bytes of every IPv4 address in it. */
interface Judged {
  text: string;
  forms: readonly Uint8Array[];
}

class Guard implements AddressGuard {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  async judge(addresses: readonly string[], port: number): Promise<void> {
    const { ownPorts, databases } = this.#options;
    const judged = addresses.map(judgedOf);
    for (const one of judged) this.#refuseDenied(one);
    if (ownPorts.has(port)) refuseAny(judged, this.#isLocal(), 'firelock listens there');
    for (const database of databases)
      if (database.port === port) refuseAny(judged, await this.#leadsTo(database.name), 'the database is there');
  }

  #refuseDenied({ text, forms }: Judged): void {
    const { denied, allowed } = this.#options;
    for (const form of forms) {
      const range = denied.find((one) => isInRange(form, one));
      if (range !== undefined && !allowed.some((one) => isInRange(form, one)))
        throw new AddressBlocked(text, `it is in the denied range ${range.text}`);
    }
  }

  /** A server on this machine may listen on every address of it. */
  async #leadsTo(server: string): Promise<(form: Uint8Array) => boolean> {
    const isLocal = this.#isLocal();
    if (server.startsWith('/')) return isLocal;
    const known = await addressesOf(server, this.#options.resolve);
    const there = known.flatMap(({ address }) => judgedOf(address).forms);
    return there.some(isLocal) ? isLocal : (form) => isAmong(form, there);
  }

  #isLocal(): (form: Uint8Array) => boolean {
    const local = this.#options.localAddresses().flatMap((address) => judgedOf(address).forms);
    return (form) => SELF.some((range) => isInRange(form, range)) || isAmong(form, local);
  }
}

/** A text that is not recognised as an address cannot be judged, and is not called. */
function judgedOf(text: string): Judged {
  const address = addressBytes(text);
  if (address === null) throw new AddressBlocked(text, 'it is not an address that can be judged');
  return { text, forms: [address, ...embeddedIpv4(address)] };
}

function refuseAny(judged: readonly Judged[], isRefused: (form: Uint8Array) => boolean, because: string): void {
  const found = judged.find(({ forms }) => forms.some(isRefused));
  if (found !== undefined) throw new AddressBlocked(found.text, because);
}

function isAmong(form: Uint8Array, others: readonly Uint8Array[]): boolean {
  return others.some((other) => form.length === other.length && form.every((byte, index) => byte === other[index]));
}

/**
 * The IPv4 addresses that an IPv6 address may lead to, as the network translates or tunnels it. Judging the address
 * includes judging these: a list that denies 169.254.169.254 would otherwise let `64:ff9b::a9fe:a9fe` through.
 */
function embeddedIpv4(address: Uint8Array): Uint8Array[] {
  if (address.length !== 16 || isUnspecifiedOrLoopback(address)) return [];
  return EMBEDDINGS.filter(({ range }) => isInRange(address, range)).flatMap(({ read }) => read(address));
}

interface Embedding {
  range: AddressRange;
  read: (address: Uint8Array) => Uint8Array[];
}

const EMBEDDINGS: readonly Embedding[] = [
  // IPv4-compatible, IPv4-mapped (RFC 4291, 2.5.5) and IPv4-translated (RFC 2765, RFC 6145).
  embedding('::/96', last),
  embedding('::ffff:0:0/96', last),
  embedding('::ffff:0:0:0/96', last),
  // NAT64: 64:ff9b::/96 (RFC 6052), and 64:ff9b:1::/48 for use in a network (RFC 8215), whose layout the network chooses.
  embedding('64:ff9b::/32', (address) => inAnyOf(LAYOUTS, address)),
  embedding('64:ff9b:1::/48', (address) => inAnyOf(LAYOUTS.slice(AFTER_48_BITS), address)),
  // 6to4 (RFC 3056).
  embedding('2002::/16', (address) => [address.slice(2, 6)]),
  // Teredo (RFC 4380): the server, and the client with all bits turned.
  embedding('2001::/32', (address) => [address.slice(4, 8), address.slice(12).map((byte) => byte ^ 0xff)]),
];

function embedding(range: string, read: Embedding['read']): Embedding {
  const [parsed] = addressRanges([range]);
  if (parsed === undefined) throw new TypeError(range);
  return { range: parsed, read };
}

function last(address: Uint8Array): Uint8Array[] {
  return [address.slice(12)];
}

/**
 * RFC 6052, 2.2: after 32, 40, 48, 56, 64 or 96 bits, around byte 8. A translator ignores byte 8 and the bytes that follow,
 * so every address fits every layout, and is judged by each. A reading that begins with zero is padding, unless all do.
 */
function inAnyOf(layouts: readonly number[][], address: Uint8Array): Uint8Array[] {
  const readings = layouts.map((places) => Uint8Array.from(places, (index) => address[index] ?? 0));
  const meant = readings.filter((reading) => reading[0] !== 0);
  return meant.length > 0 ? meant : readings;
}

const LAYOUTS = [
  [4, 5, 6, 7],
  [5, 6, 7, 9],
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
];
const AFTER_48_BITS = 2;

function isUnspecifiedOrLoopback(address: Uint8Array): boolean {
  return address.subarray(0, 15).every((byte) => byte === 0) && (address[15] ?? 0) <= 1;
}
