import { z } from 'zod';
import { withoutFault } from '../http/common-schemas.ts';
import { HOST_RULE, MAX_URL_LENGTH, absoluteUrlFault } from '../targets/http-call-schemas.ts';

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
