import { type EgressBypass, NO_BYPASS } from './egress-bypass.ts';

/** The proxy through which targets are called. */
export interface EgressProxy {
  readonly host: string;
  readonly port: number;
  /** The value of `Proxy-Authorization`; null: the URL names no user. */
  readonly authorization: string | null;
  /** All but these. */
  readonly bypass: EgressBypass;
}

const HTTP_PORT = 80;

/** Reads `http://[user:password@]host[:port]`. Null: the text is no such URL. */
export function parseEgressProxy(text: string): EgressProxy | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.hash !== '') return null;
  const { username, password } = url;
  const credentials = `${decoded(username)}:${decoded(password)}`;
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || HTTP_PORT,
    bypass: NO_BYPASS,
    authorization: username === '' ? null : `Basic ${Buffer.from(credentials).toString('base64')}`,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
