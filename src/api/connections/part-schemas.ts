import { z } from 'zod';
import { withoutFault } from '../http/common-schemas.ts';
import {
  absoluteUrlFault,
  HOST_RULE,
  MASK,
  MAX_HEADER_VALUE_LENGTH,
  MAX_URL_LENGTH,
} from '../targets/http-call-schemas.ts';
import { credentialFault } from '../../core/connections/credential-rules.ts';
import { certificatesFault, privateKeyFault } from '../../core/connections/pem.ts';
import { orFile } from '../targets/secret-files.ts';

/** Where a system is. */
export const baseUrl = urlWithout(baseFault).meta({
  description: `An origin, with or without a path, and no query: ${HOST_RULE} Secret values are bound to its origin.`,
  example: 'https://api.github.com',
});

export const tokenUrl = urlWithout(fragmentFault).meta({
  description: `Where access tokens are fetched: ${HOST_RULE} \`clientSecret\` is bound to its origin too.`,
  example: 'https://login.example.com/oauth2/token',
});

function urlWithout(faultOf: (value: string) => string | null) {
  return z
    .string()
    .max(MAX_URL_LENGTH)
    .superRefine(
      withoutFault((value) => anyTemplateFault(value) ?? absoluteUrlFault(value) ?? faultOf(value)),
    )
    .meta({ format: 'uri', maxLength: MAX_URL_LENGTH });
}

export function anyTemplateFault(value: string): string | null {
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

export const headerValue = orFile(
  z.string().max(MAX_HEADER_VALUE_LENGTH).meta({ format: 'http-header-value' }),
  'Write-only.',
);
export const token = secretText('a token', MAX_HEADER_VALUE_LENGTH, atPlace('auth', 'token'));
export const password = secretText('a password', 4096, atPlace('auth', 'password'));
export const clientSecret = secretText('the secret of the client', 8192, atPlace('auth', 'clientSecret'));
export const privateKey = secretText('a private key in PEM, not encrypted', MAX_PEM_LENGTH, privateKeyFault);
export const certificates = orFile(
  z.string().max(MAX_PEM_LENGTH).superRefine(withoutFault(certificatesFault)),
  'Certificates in PEM. They are no secret, and answered as they are.',
);
