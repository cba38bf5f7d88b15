import { percentDecoded } from '../core/connections/join-url.ts';

/** The server that takes firelock's mail. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte on (smtps). Otherwise by STARTTLS, where the server offers it. */
  readonly secure: boolean;
  /** Without TLS, nothing is sent. */
  readonly requireTLS: boolean;
  /** Its certificate need not be one that this machine trusts. */
  readonly trustsAny: boolean;
  /** Null: the URL names no user. */
  readonly auth: { readonly user: string; readonly pass: string } | null;
}

const SUBMISSION_PORT = 587;
const SMTPS_PORT = 465;

/**
 * Reads `smtp://[user:password@]host[:port]`, or `smtps://…`. A password goes over TLS only, unless `requireTLS=false` says otherwise.
 * The fault never repeats the text, which has a password.
 */
export function parseSmtpUrl(text: string): { server: SmtpServer } | { fault: string } {
  const url = URL.parse(text);
  const isOne = url !== null && (url.protocol === 'smtp:' || url.protocol === 'smtps:') && url.hostname !== '';
  if (!isOne || !['', '/'].includes(url.pathname) || url.hash !== '') return { fault: 'is no such URL' };
  const unknown = [...url.searchParams.keys()].filter((name) => !PARAMETERS.includes(name));
  if (unknown.length > 0) return { fault: `has an unknown parameter; known: ${PARAMETERS.join(', ')}` };
  const values = PARAMETERS.map((name) => url.searchParams.getAll(name));
  if (values.some((given) => given.length > 1 || given.some((value) => value !== 'true' && value !== 'false')))
    return { fault: `has a parameter that is not true or false, once; known: ${PARAMETERS.join(', ')}` };
  const [user, pass] = [percentDecoded(url.username), percentDecoded(url.password)];
  if (user === null || pass === null || (user === '') !== (pass === ''))
    return { fault: 'needs a user and a password, or neither, both percent-encoded' };
  const secure = url.protocol === 'smtps:';
  const auth = user === '' ? null : { user, pass };
  const required = url.searchParams.get('requireTLS');
  return {
    server: {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port) || (secure ? SMTPS_PORT : SUBMISSION_PORT),
      secure,
      requireTLS: required === null ? auth !== null : required === 'true',
      trustsAny: url.searchParams.get('tls.rejectUnauthorized') === 'false',
      auth,
    },
  };
}

/** By the names that nodemailer gives them. */
const PARAMETERS = ['requireTLS', 'tls.rejectUnauthorized'];

/** Of a mail's `From`: an address, or a name and an address in angle brackets. */
export function isMailFrom(text: string): boolean {
  return /^(?:[^<>@,;:"\p{Cc}]*<[^\s<>@,]+@[^\s<>@,]+>|[^\s<>@,]+@[^\s<>@,]+)$/u.test(text);
}
