/**
 * Whether nsswitch.conf(5) names a source of host names beside the hosts file and the name servers, such as mDNS or
 * systemd. Such a source is a module of the C library.
 */
export function hasOtherSources(text: string): boolean {
  const line = text.split('\n').findLast((one) => /^\s*hosts\s*:/.test(one)) ?? '';
  const sources = line
    .replace(/#.*/, '')
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/^\s*hosts\s*:/, '')
    .split(/\s+/);
  return sources.some((source) => !['', 'files', 'dns'].includes(source));
}
