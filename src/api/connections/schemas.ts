import { z } from 'zod';
import { usernameFault } from '../../core/connections/credential-rules.ts';
import { keyOfAnotherFault } from '../../core/connections/pem.ts';
import {
  ALWAYS,
  answeredInstant,
  connectionIdText,
  ignored,
  orNull,
  scheduleIdText,
  text,
  withoutFault,
} from '../http/common-schemas.ts';
import { notAFieldOf, typeFaultOf } from '../http/kind-faults.ts';
import { isObject } from '../http/json/json-body.ts';
import { checkHeaders, MASK, MAX_HEADERS } from '../targets/http-call-schemas.ts';
import {
  anyTemplateFault,
  baseUrl,
  certificates,
  clientSecret,
  headerValue,
  password,
  privateKey,
  token,
  tokenUrl,
} from './part-schemas.ts';

const headers = z
  .record(z.string().meta({ format: 'http-header-name' }), headerValue)
  .superRefine((value, context) => checkHeaders(value, context, anyTemplateFault, 'connection'), ALWAYS)
  .meta({
    maxProperties: MAX_HEADERS,
    description: `Added to each request. Write-only values, stored encrypted: answered as "${MASK}", which sent back keeps the stored value where the origin of \`url\` is unchanged.`,
    example: { 'X-Api-Key': '…' },
  });

const AUTH_TYPES = ['bearer', 'basic', 'oauth2'] as const;

const ofAuth = (type: string) => ({ error: notAFieldOf(`auth of type "${type}"`) });

const bearer = z
  .strictObject({ type: z.literal('bearer'), token }, ofAuth('bearer'))
  .meta({ id: 'BearerAuth', description: 'Sends the token as it is: `Authorization: Bearer TOKEN`.' });

const basic = z
  .strictObject(
    {
      type: z.literal('basic'),
      username: text(1000)
        .superRefine(withoutFault(usernameFault))
        .meta({ description: 'No secret; without a colon.' }),
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
      ca: certificates.meta({
        description: 'Those that vouch for the server, instead of the well-known ones.',
      }),
      cert: certificates.meta({
        description: 'The own certificate first, and then those between it and its root.',
      }),
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
  const refuse = (name: keyof Pair, message: string) =>
    context.addIssue({ code: 'custom', path: [name], message });
  const [hasCert, hasKey] = [cert ?? null, key ?? null].map((value) => value !== null);
  if (hasCert !== hasKey) refuse(hasCert ? 'key' : 'cert', `is required with ${hasCert ? 'cert' : 'key'}`);
  if (typeof cert !== 'string' || typeof key !== 'string') return;
  const fault = keyOfAnotherFault(cert, key);
  if (fault !== null) refuse('key', fault);
}
