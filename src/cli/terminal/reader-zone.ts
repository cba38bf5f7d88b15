import { isZone } from '../../core/zones/zone.ts';

/**
 * The zone that a reader's times are shown in. `TZ` may be anything that POSIX or the C library allows (empty, `UTC0`,
 * `:/etc/localtime`, `CET-1CEST,…`), and what Node makes of that is none, or the wrong one. Null: it is no IANA name.
 * `ofMachine`: what Node says, which counts where there is no `TZ`.
 */
export function readerZone(tz: string | undefined, ofMachine: string | undefined): string | null {
  const name = tz === undefined ? (ofMachine ?? '') : tz.replace(/^:/, '');
  return isZone(name) ? name : null;
}
