import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { type ResolvConf, withoutFinalDot } from './name-files.ts';

/**
 * Asks for the name, and for what it may mean in the domains that are searched (resolv.conf(5)), until one has addresses.
 * Silence ends the search, as in glibc: the next question would wait as long.
 */
export async function searchAddresses(
  name: string,
  conf: Pick<ResolvConf, 'search' | 'ndots'> & Servers,
  signal: AbortSignal,
): Promise<AddressAnswer> {
  let failure: AddressAnswer = { kind: 'none' };
  for (const candidate of candidatesOf(name, conf)) {
    const answer = await askServers(candidate, conf, signal);
    if (answer.kind === 'found' || answer.kind === 'silent') return answer;
    if (answer.kind === 'failed') failure = answer;
  }
  return failure;
}

/** A final dot says that the name is whole. */
function candidatesOf(name: string, { search, ndots }: Pick<ResolvConf, 'search' | 'ndots'>): string[] {
  if (name.endsWith('.')) return [withoutFinalDot(name)];
  const dots = name.split('.').length - 1;
  const searched = search.map((domain) => `${name}.${withoutFinalDot(domain.replace(/^\./, ''))}`);
  return dots >= ndots ? [name, ...searched] : [...searched, name];
}

type AddressAnswer =
  | { kind: 'found'; addresses: readonly LookupAddress[]; seconds: number }
  /** There is no such name, or it has no address. */
  | { kind: 'none' }
  /** The servers cannot tell; `code` says why. */
  | { kind: 'failed'; code: string }
  | { kind: 'silent' };

interface Servers {
  /** Null: as the resolver library finds them out by itself. */
  servers: readonly string[] | null;
  timeoutSeconds: number;
  tries: number;
}

type Family = 4 | 6;

/** If one family's addresses are there, those of the other get this long (RFC 8305, 3, has 50 ms). */
const OTHER_FAMILY_MS = 250;

/** Asks the name servers for the addresses of exactly this name. When the signal aborts, the questions end. */
async function askServers(
  name: string,
  { servers, timeoutSeconds, tries }: Servers,
  signal: AbortSignal,
): Promise<AddressAnswer> {
  if (signal.aborted) return { kind: 'silent' };
  // One for each name: its cancel() ends all questions that it asked.
  const timeout = timeoutSeconds * 1000;
  const resolver = new Resolver({ timeout, tries, maxTimeout: timeout });
  if (servers !== null) resolver.setServers(servers);
  const enough = new AbortController();
  const end = () => {
    resolver.cancel();
    enough.abort();
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    const asked = usefulFamilies().map((family) => ask(resolver, name, family));
    const first = Promise.any(asked.map(foundOnly)).then(() =>
      setTimeout(OTHER_FAMILY_MS, undefined, { signal: enough.signal }),
    );
    await Promise.race([Promise.all(asked), first.catch(() => Promise.all(asked))]);
    end();
    return joined(await Promise.all(asked));
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}

/**
 * As getaddrinfo with AI_ADDRCONFIG: not of a family that this machine has no address of. Where it is reachable from the
 * Internet by IPv6, that comes first (RFC 6724, shortened to what decides here); Node tries the families in turn.
 */
function usefulFamilies(): Family[] {
  const addresses = Object.values(networkInterfaces()).flatMap((some = []) => some);
  const outer = addresses.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'));
  const families = new Set(outer.map(({ family }) => family));
  if (families.size === 1) return families.has('IPv4') ? [4] : [6];
  return outer.some(({ address }) => /^[23][0-9a-f]{3}:/i.test(address)) ? [6, 4] : [4, 6];
}

async function ask(resolver: Resolver, name: string, family: Family): Promise<AddressAnswer> {
  try {
    const records =
      family === 4 ? await resolver.resolve4(name, { ttl: true }) : await resolver.resolve6(name, { ttl: true });
    const addresses = records.map(({ address }) => ({ address, family }));
    return { kind: 'found', addresses, seconds: Math.min(...records.map(({ ttl }) => ttl)) };
  } catch (error) {
    return failureOf((error as NodeJS.ErrnoException).code ?? String(error));
  }
}

function failureOf(code: string): AddressAnswer {
  if (['ENOTFOUND', 'ENODATA', 'EBADNAME'].includes(code)) return { kind: 'none' };
  if (['ETIMEOUT', 'ECONNREFUSED', 'ECANCELLED'].includes(code)) return { kind: 'silent' };
  return { kind: 'failed', code };
}

async function foundOnly(answer: Promise<AddressAnswer>): Promise<void> {
  if ((await answer).kind !== 'found') throw new Error('no address');
}

function joined(answers: readonly AddressAnswer[]): AddressAnswer {
  const found = answers.filter((answer) => answer.kind === 'found');
  if (found.length > 0)
    return {
      kind: 'found',
      addresses: found.flatMap(({ addresses }) => addresses),
      seconds: Math.min(...found.map(({ seconds }) => seconds)),
    };
  return (
    answers.find(({ kind }) => kind === 'silent') ?? answers.find(({ kind }) => kind === 'failed') ?? { kind: 'none' }
  );
}
