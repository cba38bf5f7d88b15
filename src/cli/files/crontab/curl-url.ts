import { StaysCommand } from './imported.ts';

/**
 * The URL of a call; `query` is what -G adds to it. @throws StaysCommand unless curl and firelock send the same bytes for
 * it to the same place
 */
export function curlUrl(urls: readonly string[], query: string | null): string {
  const [given = ''] = urls;
  if (urls.length !== 1) throw new StaysCommand(`${urls.length} URLs`);
  if (!/^https?:\/\//i.test(given)) throw new StaysCommand('its URL does not begin with http:// or https://');
  if (/^[^/]+\/\/[^/?#]*@/.test(given)) throw new StaysCommand('its URL has credentials');
  const [expanded] = /[[\]{}]/.exec(given) ?? [];
  if (expanded !== undefined) throw new StaysCommand(`curl expands “${expanded}” in its URL`);
  const url = query === null ? given : withQuery(given, query);
  const [, host = '', rest = ''] = SAME.exec(url) ?? [];
  const parsed = URL.parse(url);
  if (parsed?.hostname !== host.toLowerCase() || !isSent(rest, parsed))
    throw new StaysCommand('firelock would write its URL in another way');
  if (LOCAL.test(parsed.hostname))
    throw new StaysCommand(`${parsed.hostname} is the machine on which a command runs`);
  return url;
}

/** What both leave as it is: other characters are encoded, by curl in a way that depends on its version. */
const SAME = /^https?:\/\/([\w-]+(?:\.[\w-]+)*)(?::\d{1,5})?([/?][\w.~!$&'()*+,;=:@/?%-]*)?$/i;
const LOCAL = /^(?:localhost|.*\.localhost|localhost\.localdomain|127\..*|169\.254\..*|0\.0\.0\.0)$/;

function isSent(rest: string, { pathname, search }: URL): boolean {
  return (rest.startsWith('/') ? rest : `/${rest}`) === pathname + search;
}

/** Versions of curl differ about percent signs here, and about a query that is empty or ends with &. */
function withQuery(url: string, query: string): string {
  if (query === '' || /%|[?&]$/.test(url) || query.includes('%'))
    throw new StaysCommand('versions of curl differ about what -G makes of its URL');
  return `${url}${url.includes('?') ? '&' : '?'}${query}`;
}
