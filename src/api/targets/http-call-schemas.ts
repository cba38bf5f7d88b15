import { z } from 'zod';
import { type HeaderPlace, headerFault } from '../../core/http/header-rules.ts';
import { HTTP_METHODS } from '../../core/schedules/schedule.ts';
import { WEBHOOK_SECRET_RULE, webhookKey } from '../../core/secrets/key-ring.ts';
import { withoutFault } from '../http/common-schemas.ts';
import { pathFault } from '../../core/connections/join-url.ts';
import { KNOWN_TEMPLATES, renderTemplate, templateFault } from '../../core/http/template.ts';

/** The mask of a header value or a secret in answers. Sent back, it keeps the stored value. */
export const MASK = '***';

export const MAX_URL_LENGTH = 2048;
const MAX_HOSTNAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
export const MAX_HEADER_VALUE_LENGTH = 8192;
export const MAX_HEADERS = 64;

/** For descriptions of URLs. */
export const HOST_RULE =
  `http or https, without credentials; its hostname, in ASCII, at most ${MAX_HOSTNAME_LENGTH} characters, ` +
  `${MAX_LABEL_LENGTH} between dots.`;

/** Whether it is a URL, or a path below the connection, only the whole target can say: `addressFault`. */
export const url = z
  .string()
  .max(MAX_URL_LENGTH)
  .meta({
    format: 'url-template',
    maxLength: MAX_URL_LENGTH,
    description:
      `${HOST_RULE} Templates in path and query: ${KNOWN_TEMPLATES}. With a \`connection\`, a path (and a query) below its URL, ` +
      'which it cannot leave: no dot segments, no `//`, no encoded slashes.',
    example: 'https://example.com/jobs/nightly?run={{runId}}',
  });

export const method = z.enum(HTTP_METHODS);

export const headers = z
  .record(
    z.string().meta({ format: 'http-header-name' }),
    z.string().max(MAX_HEADER_VALUE_LENGTH).meta({ format: 'http-header-value' }),
  )
  .superRefine((value, context) => checkHeaders(value, context, (text) => templateFault(text, true)))
  .meta({
    maxProperties: MAX_HEADERS,
    description: `Write-only values, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the URL's origin is unchanged. Templates: ${KNOWN_TEMPLATES}`,
    example: { Authorization: 'Bearer …' },
  });

/** For each secret, in the document: tools cannot tell it from a pattern. */
const SECRET_FORMAT = 'webhook-secret';

const oneSecret = z
  .string()
  .superRefine(withoutFault((value) => (isNoSecret(value) ? NO_SECRET : null)))
  .meta({ format: SECRET_FORMAT });

/** The message does not repeat the value. */
const twoSecrets = z
  .array(z.string().meta({ format: SECRET_FORMAT }))
  .superRefine(checkSecrets, { when: ({ value }) => Array.isArray(value) })
  .meta({ minItems: 2, maxItems: 2, uniqueItems: true });

export const secret = z
  .union([oneSecret, twoSecrets, z.null()], { error: 'must be a string, or a list of two' })
  .describe(
    `Signs each request as Standard Webhooks has it: ${WEBHOOK_SECRET_RULE}; a list of two while receivers change from one to ` +
      `the other. Write-only, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the URL's ` +
      'origin is unchanged.',
  );
export const answeredSecret = z.union([z.string(), z.array(z.string()), z.null()]);

/** For a merge patch: what is neither a URL nor a path is a fault at once, the whole is checked once it is merged. */
export const patchedUrl = url.superRefine(
  withoutFault((value) => (addressFault('any', value) === null ? null : addressFault(null, value))),
);
export const patchedCall = {
  method: method.nullish(),
  headers: z.record(z.string(), z.string().nullable()).nullish(),
};
/** Likewise. */
export const patchedSecret = z
  .union([z.string(), z.array(z.string()), z.null()], { error: 'must be a string, or a list of two' })
  .optional();

export const answeredCall = { url: z.string(), method, headers: z.record(z.string(), z.string()) };

const NO_SECRET = `must be ${WEBHOOK_SECRET_RULE}`;

function isNoSecret(value: string): boolean {
  return value !== MASK && webhookKey(value) === null;
}

function checkSecrets(list: readonly unknown[], context: z.core.$RefinementCtx): void {
  const refuse = (path: number[], message: string) => context.addIssue({ code: 'custom', path, message, input: list });
  if (list.length !== 2) {
    refuse([], 'must be a list of two secrets, or one as a string');
    return;
  }
  for (const [index, one] of list.entries()) {
    if (typeof one === 'string' && isNoSecret(one)) refuse([index], NO_SECRET);
  }
  const [first, second] = list;
  if (first === second && first !== MASK) refuse([1], 'is the same as the first');
}

/** What is wrong with the `url` of a call. */
export function addressFault(connection: string | null, value: string): string | null {
  if (connection === null) return urlFault(value);
  const fault = templateFault(value) ?? pathFault(renderTemplate(value, SAMPLE));
  if (fault === null) return null;
  return `${fault}; with a connection, it is a path below the URL of the connection`;
}

const SAMPLE = { runId: 'x', runName: 'x', scheduleId: 'x', scheduledFor: 0, attempt: 1 };

function urlFault(value: string): string | null {
  const authority = authorityOf(value);
  if (authority?.includes('{{') === true) return 'must have templates in its path and query only';
  return absoluteUrlFault(value) ?? templateFault(value);
}

function authorityOf(value: string): string | undefined {
  return /^https?:\/\/([^/?#\\]*)/i.exec(value)?.[1];
}

/** Why it is no URL that firelock can call; templates count as text. */
export function absoluteUrlFault(value: string): string | null {
  const authority = authorityOf(value);
  if (authority === undefined) return 'must be an absolute http or https URL';
  if (/[\s\p{Cc}]/u.test(value)) return 'must not have white space or control characters';
  if (authority.includes('@')) return 'must not have credentials; send them in a header';
  const url = URL.parse(value);
  return url === null ? 'must be a URL' : hostnameFault(url.hostname);
}

/** Whether a name server can be asked for the name (RFC 1035, 2.3.4), in ASCII. The dot of the root does not count. */
function hostnameFault(hostname: string): string | null {
  const name = hostname.replace(/\.$/, '');
  const inAscii = 'as it is sent, in ASCII';
  if (name.length > MAX_HOSTNAME_LENGTH)
    return `must have a hostname of at most ${MAX_HOSTNAME_LENGTH} characters ${inAscii}; it has ${name.length}`;
  const label = Math.max(...name.split('.').map(({ length }) => length));
  if (label <= MAX_LABEL_LENGTH) return null;
  return `must have at most ${MAX_LABEL_LENGTH} characters between the dots of its hostname ${inAscii}; it has ${label}`;
}

/** For `superRefine`. A value that is no text is not looked at; `faultOf` says what else is wrong with one. */
export function checkHeaders(
  value: Record<string, unknown>,
  context: z.core.$RefinementCtx,
  faultOf: (value: string) => string | null,
  place: HeaderPlace = 'call',
): void {
  for (const [name, message] of headerFaults(value, (...one) => headerFault(...one, place) ?? faultOf(one[1])))
    context.addIssue({ code: 'custom', path: [name], message });
  if (Object.keys(value).length > MAX_HEADERS)
    context.addIssue({ code: 'custom', message: `must be at most ${MAX_HEADERS} headers` });
}

function headerFaults(
  given: Record<string, unknown>,
  faultOf: (name: string, value: string) => string | null,
): [name: string, fault: string][] {
  const seen = new Set<string>();
  return Object.entries(given).flatMap(([name, sent]): [string, string][] => {
    const value = typeof sent === 'string' ? sent : '';
    const fault = faultOf(name, value);
    const again = seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    if (fault !== null) return [[name, fault]];
    return again ? [[name, 'is there in another letter case too']] : [];
  });
}
