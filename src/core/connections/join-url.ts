/**
 * Why a target cannot have this path below its connection's URL, or null: a path and a query, or nothing; with templates, or
 * with these filled in. It is judged as a lenient server may read it, for the request carries the connection's credentials.
 */
export function pathFault(path: string): string | null {
  if (UNSEEN.test(path)) return 'contains white space or a control character';
  if (path.includes('\\')) return 'contains a backslash';
  if (path.includes('#')) return 'contains a fragment (#)';
  const [pathname = ''] = path.split('?', 1);
  if (pathname === '') return null;
  if (!pathname.startsWith('/')) return 'does not begin with a slash';
  if (pathname.includes('//')) return 'contains two slashes in a row';
  if (ENCODED_SLASH.test(pathname)) return 'contains an encoded slash or backslash';
  const decoded = percentDecoded(pathname.replace(ENCODED_DOT, '.').replace(ENCODED_SPACE, ' '));
  if (decoded === null) return 'contains a percent sign that begins no character in UTF-8';
  if (CONTROL.test(decoded)) return 'contains an encoded control character';
  return decoded.normalize('NFKC').split('/').some(isDotSegment) ? 'contains a dot segment' : null;
}

/**
 * The address below a connection's URL: `base` is an origin with or without a path, `path` has its templates filled in. An
 * empty path is the base itself, `/` its path with a final slash.
 * @throws TypeError if the path is faulty, or the base is none
 */
export function joinBelow(base: string, path: string): { origin: string; path: string } {
  const root = new URL(base);
  const isPlain = [root.search, root.hash, root.username, root.password].every((part) => part === '');
  if (!isPlain || !/^https?:$/.test(root.protocol))
    throw new TypeError('the URL of the connection is no origin with or without a path');
  const fault = pathFault(path);
  if (fault !== null) throw new TypeError(`the path ${fault}`);
  const above = root.pathname.replace(/\/$/, '');
  const url = new URL(root.origin + (path.startsWith('/') ? above : root.pathname) + path);
  // Cannot be after the judgement above; if it is, nothing is sent.
  if (url.origin !== root.origin || !`${url.pathname}/`.startsWith(`${above}/`))
    throw new TypeError('the path leads out of the URL of the connection');
  return { origin: url.origin, path: url.pathname + url.search };
}

/** URL parsers leave some of it out. */
const UNSEEN = /[\s\p{Cc}]/u;
const CONTROL = /\p{Cc}/u;

/** Also encoded twice, or more often: a proxy may decode before the server does. */
const ENCODED_SLASH = /%(?:25)*(?:2f|5c)/i;
const ENCODED_DOT = /%(?:25)*2e/gi;
const ENCODED_SPACE = /%(?:25)*20/g;

/**
 * Some servers take what follows a semicolon for a parameter of the segment, and `..;x` for `..`; others leave out blanks at its ends, or
 * read a full-width dot as a dot (NFKC).
 */
function isDotSegment(segment: string): boolean {
  return /^\s*\.{1,2}\s*(?:;|$)/u.test(segment);
}

/** Null: it has a % that begins no encoded character. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
