/** The host and the port that a request names. */
interface Authority {
  /** In lower case, without a dot at its end; an IPv6 address without its brackets. */
  host: string;
  /** Null: not named. */
  port: number | null;
}

/** Reads a `Host`, or the same part of a URL. Null: it is none, or has a user in it. */
export function parseAuthority(text: string): Authority | null {
  const [, address, name, port = ''] =
    /^(?:\[([\da-f:.]{2,45})\]|([\w.-]{1,253}?)\.?)(?::(\d{0,5}))?$/i.exec(text) ?? [];
  const host = (address ?? name)?.toLowerCase();
  return host === undefined ? null : { host, port: port === '' ? null : Number(port) };
}

/** The authority of a request target in absolute form (`GET http://a/b`); null: it is in another form. */
export function authorityOfTarget(target: string): string | null {
  return /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i.exec(target)?.[1] ?? null;
}

/** Whether an `Origin` (RFC 6454) names this authority: the same host and port, where `http` means 80 and `https` 443. */
export function isOriginOf(origin: string, authority: Authority): boolean {
  const [, scheme = '', rest = ''] = /^(https?):\/\/(.*)$/i.exec(origin) ?? [];
  const named = parseAuthority(rest);
  const standard = scheme.toLowerCase() === 'https' ? 443 : 80;
  return (
    named !== null &&
    named.host === authority.host &&
    (named.port ?? standard) === (authority.port ?? standard)
  );
}
