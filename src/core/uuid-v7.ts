import type { Instant } from './instant.ts';

/** UUIDv7 layout (RFC 9562 §5.7): the time first, then 19 hexadecimal digits of the caller's, of which the fourth gives two bits. */
export function uuidV7(time: Instant, hex: string): string {
  const timeHex = time.toString(16).padStart(12, '0');
  const variant = ((parseInt(hex.charAt(3), 16) & 0x3) | 0x8).toString(16);
  return `${timeHex.slice(0, 8)}-${timeHex.slice(8)}-7${hex.slice(0, 3)}-${variant}${hex.slice(4, 7)}-${hex.slice(7, 19)}`;
}
