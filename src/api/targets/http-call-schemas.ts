import { z } from 'zod';
import { headerFault } from '../../core/http/header-rules.ts';
import { HTTP_METHODS } from '../../core/schedules/schedule.ts';
import { WEBHOOK_SECRET_RULE, webhookKey } from '../../core/secrets/webhook-secret.ts';
import { withoutFault } from '../http/common-schemas.ts';
import { KNOWN_TEMPLATES, renderTemplate, templateFault } from '../../core/http/template.ts';

/** The mask of a header value or a secret in answers. Sent back, it keeps the stored value. */
export const MASK = '***';

const MAX_URL_LENGTH = 2048;
const MAX_HOSTNAME_LENGTH = 253;
const MAX_LABEL_LENGTH = 63;
const MAX_HEADER_VALUE_LENGTH = 8192;
const MAX_HEADERS = 64;

export const url = z
  .string()
  .max(MAX_URL_LENGTH)
  .superRefine(withoutFault(urlFault))
  .meta({
    format: 'uri-template',
    maxLength: MAX_URL_LENGTH,
    description:
      `http or https, without credentials; its hostname, in ASCII, at most ${MAX_HOSTNAME_LENGTH} characters, ` +
      `${MAX_LABEL_LENGTH} between dots. Templates in path and query: ${KNOWN_TEMPLATES}`,
    example: 'https://example.com/jobs/nightly?run={{runId}}',
  });

export const method = z.enum(HTTP_METHODS);

export const headers = z
  .record(
    z.string().meta({ format: 'http-header-name' }),
    z.string().max(MAX_HEADER_VALUE_LENGTH).meta({ format: 'http-header-value' }),
  )
  .superRefine((value, context) => {
    for (const [name, message] of headerFaults(value)) {
      context.addIssue({ code: 'custom', path: [name], message });
    }
    if (Object.keys(value).length > MAX_HEADERS) {
      context.addIssue({ code: 'custom', message: `must be at most ${MAX_HEADERS} headers` });
    }
  })
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
  .meta({
    description:
      `Signs each request as Standard Webhooks has it: ${WEBHOOK_SECRET_RULE}; a list of two while receivers change from one to ` +
      `the other. Write-only, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the URL's ` +
      'origin is unchanged.',
  });
export const answeredSecret = z.union([z.string(), z.array(z.string()), z.null()]);

/** For a merge patch: the whole is checked once it is merged. */
export const patchedCall = {
  method: method.nullish(),
  headers: z.record(z.string(), z.string().nullable()).nullish(),
};
/** Likewise. */
export const patchedSecret = z
  .union([z.string(), z.array(z.string()), z.null()], { error: 'must be a string, or a list of two' })
  .optional();

export const answeredCall = { url: z.string(), method, headers: z.record(z.string(), z.string()) };

const SAMPLE = { runId: 'x', runName: 'x', scheduleId: 'x', scheduledFor: 0, attempt: 1 };

const NO_SECRET = `must be ${WEBHOOK_SECRET_RULE}`;

function isNoSecret(value: string): boolean {
  return value !== MASK && webhookKey(value) === null;
}

function checkSecrets(list: readonly unknown[], context: z.core.$RefinementCtx): void {
  const refuse = (path: number[], message: string) =>
    context.addIssue({ code: 'custom', path, message, input: list });
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

function urlFault(value: string): string | null {
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(value)?.[1];
  if (authority === undefined) return 'must be an absolute http or https URL';
  if (/[\s\p{Cc}]/u.test(value)) return 'must not have white space or control characters';
  if (authority.includes('{{')) return 'must have templates in its path and query only';
  if (authority.includes('@')) return 'must not have credentials; send them in a header';
  const unknown = templateFault(value);
  if (unknown !== null) return unknown;
  const url = URL.parse(renderTemplate(value, SAMPLE));
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

function headerFaults(given: Record<string, string>): [name: string, fault: string][] {
  const seen = new Set<string>();
  return Object.entries(given).flatMap(([name, value]): [string, string][] => {
    const fault = headerFault(name, value) ?? templateFault(value, true);
    const again = seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    if (fault !== null) return [[name, fault]];
    return again ? [[name, 'is there in another letter case too']] : [];
  });
}
