/** 127.1.1.4 is the third process of instance 1; there are more than 250 of them in a long campaign. */
export function sourceAddress(instance: number, process: number): string {
  return `127.${1 + Math.floor(process / 250)}.${instance}.${1 + (process % 250)}`;
}

/** The other way round: `1.3`. */
export function senderOf(address: string): string {
  const [, high = 0, instance = 0, low = 0] = address.split('.').map(Number);
  return `${instance}.${(high - 1) * 250 + low - 1}`;
}
