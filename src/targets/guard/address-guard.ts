import { networkInterfaces } from 'node:os';
import { type AddressRange, addressRanges, isInRange } from '../../config/address-ranges.ts';
import { DENIED_PRESETS } from '../../config/denied-ranges.ts';
import { addressBytes } from '../../config/ip-address.ts';
import { resolveDatabaseName } from '../../postgres/connection/socket.ts';
import { type Resolve, addressesOf } from '../../runtime/names/resolve.ts';
import { embeddedIpv4 } from './embedded-ipv4.ts';

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
      if (database.port === port)
        refuseAny(judged, await this.#leadsTo(database.name), 'the database is there');
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

function refuseAny(
  judged: readonly Judged[],
  isRefused: (form: Uint8Array) => boolean,
  because: string,
): void {
  const found = judged.find(({ forms }) => forms.some(isRefused));
  if (found !== undefined) throw new AddressBlocked(found.text, because);
}

function isAmong(form: Uint8Array, others: readonly Uint8Array[]): boolean {
  return others.some(
    (other) => form.length === other.length && form.every((byte, index) => byte === other[index]),
  );
}
