import { isIP } from 'node:net';

/** The 4 or 16 bytes of an address in its usual form, without its zone (`%eth0`). Null: the text is no address. */
export function addressBytes(text: string): Uint8Array | null {
  const plain = text.split('%', 1)[0] ?? '';
  switch (isIP(plain)) {
    case 4:
      return ipv4Bytes(plain);
    case 6:
      return ipv6Bytes(plain);
    default:
      return null;
  }
}

function ipv4Bytes(text: string): Uint8Array {
  return Uint8Array.from(text.split('.'), Number);
}

/** RFC 4291, 2.2: groups of 16 bits, `::` for a row of zeros, the last 32 bits perhaps as IPv4. */
function ipv6Bytes(text: string): Uint8Array {
  const [head = '', tail] = text.split('::');
  const front = bytesOfGroups(head);
  const back = bytesOfGroups(tail ?? '');
  const bytes = new Uint8Array(16);
  bytes.set(front);
  bytes.set(back, 16 - back.length);
  return bytes;
}

function bytesOfGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return [...ipv4Bytes(group)];
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
