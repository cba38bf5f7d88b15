import { z } from 'zod';
import {
  certificatesFault,
  credentialFault,
  keyOfAnotherFault,
  privateKeyFault,
  usernameFault,
} from '../../core/connections/credential-rules.ts';
import {
  ALWAYS,
  answeredInstant,
  connectionIdText,
  ignored,
  notAFieldOf,
  orNull,
  scheduleIdText,
  text,
  typeFaultOf,
  withoutFault,
} from '../http/common-schemas.ts';
import { isObject } from '../http/json/json-body.ts';
import {
  absoluteUrlFault,
  checkHeaders,
  HOST_RULE,
  MASK,
  MAX_HEADER_VALUE_LENGTH,
  MAX_HEADERS,
  MAX_URL_LENGTH,
} from '../targets/http-call-schemas.ts';
import { orFile } from '../targets/secret-files.ts';

/** Where a system is. */
const baseUrl = urlWithout(baseFault).meta({
  description: `An origin, with or without a path, and no query: ${HOST_RULE} Secret values are bound to its origin.`,
  example: 'https://api.github.com',
});

const tokenUrl = urlWithout(fragmentFault).meta({
  description: `Where access tokens are fetched: ${HOST_RULE} \`clientSecret\` is bound to its origin too.`,
  example: 'https://login.example.com/oauth2/token',
});

function urlWithout(faultOf: (value: string) => string | null) {
  return z
    .string()
    .max(MAX_URL_LENGTH)
    .superRefine(withoutFault((value) => anyTemplateFault(value) ?? absoluteUrlFault(value) ?? faultOf(value)))
    .meta({ format: 'uri', maxLength: MAX_URL_LENGTH });
}

function anyTemplateFault(value: string): string | null {
  return value.includes('{{') ? 'must not have templates: a connection is the same for all runs' : null;
}

function fragmentFault(value: string): string | null {
  return value.includes('#') ? 'must not have a fragment' : null;
}

/** A path stands below it, so nothing in it may be read in two ways. */
function baseFault(value: string): string | null {
  if (value.includes('?')) return 'must not have a query';
  if (value.includes('#')) return 'must not have a fragment';
  const written = value.replace(/^https?:\/\/[^/\\]*/i, '') || '/';
  const sent = URL.parse(value)?.pathname ?? '/';
  if (written !== sent) return `must have its path as it is sent: ${sent}`;
  return sent.includes('//') ? 'must not have // in its path' : null;
}

const MAX_PEM_LENGTH = 65_536;

const KEPT = `Answered as "${MASK}", which sent back keeps the stored value where the origins that it is bound to are unchanged.`;

function secretText(name: string, maxLength: number, faultOf: (value: string) => string | null) {
  const text = z
    .string()
    .max(maxLength)
    .superRefine(withoutFault((value) => (value === MASK ? null : faultOf(value))));
  return orFile(text, `Write-only: ${name}. ${KEPT}`);
}

const atPlace = (...steps: string[]) => {
  return (value: string) => credentialFault(steps, value);
};

const headerValue = orFile(
  z.string().max(MAX_HEADER_VALUE_LENGTH).meta({ format: 'http-header-value' }),
  'Write-only.',
);
const token = secretText('a token', MAX_HEADER_VALUE_LENGTH, atPlace('auth', 'token'));
const password = secretText('a password', 4096, atPlace('auth', 'password'));
const clientSecret = secretText('the secret of the client', 8192, atPlace('auth', 'clientSecret'));
const privateKey = secretText('a private key in PEM, not encrypted', MAX_PEM_LENGTH, privateKeyFault);
const certificates = orFile(
  z.string().max(MAX_PEM_LENGTH).superRefine(withoutFault(certificatesFault)),
  'Certificates in PEM. They are no secret, and answered as they are.',
);

const headers = z
  .record(z.string().meta({ format: 'http-header-name' }), headerValue)
  .superRefine((value, context) => checkHeaders(value, context, anyTemplateFault, 'connection'), ALWAYS)
  .meta({
    maxProperties: MAX_HEADERS,
    description: `Added to each request. Write-only values, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the origin of \`url\` is unchanged.`,
    example: { 'X-Api-Key': '…' },
  });

const AUTH_TYPES = ['bearer', 'basic', 'oauth2'] as const;

const ofAuth = (type: string) => notAFieldOf(`auth of type "${type}"`);

const bearer = z
  .strictObject({ type: z.literal('bearer'), token }, ofAuth('bearer'))
  .meta({ id: 'BearerAuth', description: 'Sends the token as it is: `Authorization: Bearer TOKEN`.' });

const basic = z
  .strictObject(
    {
      type: z.literal('basic'),
      username: text(1000).superRefine(withoutFault(usernameFault)).describe('No secret; without a colon.'),
      password,
    },
    ofAuth('basic'),
  )
  .meta({ id: 'BasicLogin', description: 'A name and a password (RFC 7617).' });

/** RFC 6749, 3.3: words with a space between them. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/;

const oauth2 = z
  .strictObject(
    {
      type: z.literal('oauth2'),
      tokenUrl,
      clientId: printable(1000),
      clientSecret,
      ...orNull({
        scope: text(4096).regex(SCOPE, { error: 'must be words with a space between them' }),
        audience: printable(2048),
      }),
    },
    ofAuth('oauth2'),
  )
  .meta({ id: 'OAuthClient', description: 'OAuth 2 client credentials (RFC 6749, 4.4).' });

const auth = z.discriminatedUnion('type', [bearer, basic, oauth2], { error: typeFaultOf(AUTH_TYPES) }).meta({
  id: 'ConnectionAuth',
  description: 'How to log in. A header `authorization` beside it is refused.',
});

const tls = z
  .strictObject(
    orNull({
      ca: certificates.describe('Those that vouch for the server, instead of the well-known ones.'),
      cert: certificates.describe('The own certificate first, and then those between it and its root.'),
      key: privateKey,
    }),
  )
  .superRefine(checkPair, ALWAYS)
  .meta({ id: 'ConnectionTls', description: 'In PEM; `cert` and `key` go together.' });

const fields = {
  description: text(1000).nullable(),
  url: baseUrl,
  headers,
  auth: auth.nullable(),
  tls: tls.nullable(),
};

export const connectionInput = z
  .strictObject({
    id: scheduleIdText.optional(),
    ...fields,
    description: fields.description.default(null),
    headers: fields.headers.default({}),
    auth: fields.auth.default(null),
    tls: fields.tls.default(null),
    version: ignored,
    updatedAt: ignored,
  })
  .superRefine(({ headers: sent, auth: login }, context) => {
    if (!isObject(login) || !isObject(sent)) return;
    for (const name of Object.keys(sent).filter((one) => one.toLowerCase() === 'authorization'))
      context.addIssue({ code: 'custom', path: ['headers', name], message: 'cannot be there beside auth' });
  }, ALWAYS)
  .meta({ id: 'ConnectionDefinition' });
export type ConnectionInput = z.output<typeof connectionInput>;

export const connection = z
  .object({ id: connectionIdText, ...fields, version: z.int(), updatedAt: answeredInstant })
  .meta({
    id: 'Connection',
    description: `Where a system is, and how to log in to it. Secret values are "${MASK}".`,
  });

function printable(max: number) {
  return text(max)
    .min(1)
    .refine((value) => !/\p{Cc}/u.test(value), { error: 'must not have control characters' });
}

interface Pair {
  cert: unknown;
  key: unknown;
}

function checkPair({ cert, key }: Pair, context: z.core.$RefinementCtx): void {
  const refuse = (name: keyof Pair, message: string) => context.addIssue({ code: 'custom', path: [name], message });
  const [hasCert, hasKey] = [cert ?? null, key ?? null].map((value) => value !== null);
  if (hasCert !== hasKey) refuse(hasCert ? 'key' : 'cert', `is required with ${hasCert ? 'cert' : 'key'}`);
  if (typeof cert !== 'string' || typeof key !== 'string') return;
  const fault = keyOfAnotherFault(cert, key);
  if (fault !== null) refuse('key', fault);
}
