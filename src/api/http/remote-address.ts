/**
 * On a socket of both families, Node writes an IPv4 address as `::ffff:192.0.2.1`, and a local IPv6 address with its
 * interface.
 */
export function remoteAddressOf({ remoteAddress = '' }: { remoteAddress?: string | undefined }): string {
  return remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
}

/** A host with one IPv6 address usually has a whole /64 of them. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [before = '', after] = address.split('::');
  const first = before.split(':').filter((part) => part !== '');
  const last = (after ?? '').split(':').filter((part) => part !== '');
  const zeros = after === undefined ? 0 : 8 - first.length - last.length;
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':');
}
