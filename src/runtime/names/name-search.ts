import { type AddressAnswer, type Servers, askServers } from './address-question.ts';
import { withoutFinalDot } from './hosts-file.ts';
import type { ResolvConf } from './resolv-conf.ts';

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
