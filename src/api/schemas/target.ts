import { z } from 'zod';
import { headerFault } from '../../core/header-rules.ts';
import { HTTP_METHODS } from '../../core/schedule.ts';
import { TEMPLATE_NAMES, findUnknownTemplates, renderTemplate } from '../../core/template.ts';
import { unsupported } from './unsupported.ts';

/** What stands for a header value in answers. Sent back, it keeps the stored value. */
export const MASK = '***';

const LONGEST_URL = 2048;
const LONGEST_HEADER_VALUE = 8192;
const MOST_HEADERS = 64;

const templates = TEMPLATE_NAMES.map((name) => `{{${name}}}`).join(' ');

const type = z.literal('http', {
  error: ({ input }) =>
    input === 'pull' ? 'pull is not supported by this version; must be "http"' : undefined,
});

const url = z
  .string()
  .max(LONGEST_URL)
  .superRefine((value, context) => {
    const fault = urlFault(value);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  })
  .meta({
    format: 'uri-template',
    maxLength: LONGEST_URL,
    description: `http or https, without credentials. Templates in path and query: ${templates}`,
    example: 'https://example.com/jobs/nightly?run={{runId}}',
  });

const method = z.enum(HTTP_METHODS);

const headers = z
  .record(z.string(), z.string().max(LONGEST_HEADER_VALUE))
  .superRefine((value, context) => {
    for (const [name, message] of headerFaults(value)) {
      context.addIssue({ code: 'custom', path: [name], message });
    }
    if (Object.keys(value).length > MOST_HEADERS) {
      context.addIssue({ code: 'custom', message: `must be at most ${MOST_HEADERS} headers` });
    }
  })
  .meta({
    maxProperties: MOST_HEADERS,
    description: `Write-only values: answered as "${MASK}", which sent back keeps the stored value where the URL's origin is unchanged. Templates: ${templates}`,
    example: { Authorization: 'Bearer …' },
  });

const later = { secret: unsupported(null), cancel: unsupported(null) };

const lookupInput = z
  .strictObject({ url, method: method.default('GET'), headers: headers.default({}) })
  .meta({
    id: 'Lookup',
    description:
      'Asked, without a body, whether a run arrived, before an attempt of unknown outcome is repeated or given up: ' +
      '2xx = it did, 404 = it did not, anything else = still unknown.',
  });

export const targetInput = z
  .strictObject({
    type,
    url,
    method: method.default('POST'),
    headers: headers.default({}),
    lookup: lookupInput.nullable().default(null),
    ...later,
  })
  .meta({ id: 'Target', description: 'What a run is handed to.' });

const patched = {
  url: url.optional(),
  method: method.nullish(),
  headers: z.record(z.string(), z.string().nullable()).nullish(),
};

export const targetPatch = z.strictObject({
  type: type.optional(),
  ...patched,
  lookup: z.strictObject(patched).nullish(),
  ...later,
});

const answered = { url: z.string(), method, headers: z.record(z.string(), z.string()) };

export const answeredTarget = z
  .object({
    type: z.literal('http'),
    ...answered,
    lookup: z
      .object(answered)
      .meta({ id: 'AnsweredLookup', description: `A lookup; each header value is "${MASK}".` })
      .nullable(),
  })
  .meta({ id: 'AnsweredTarget', description: `A target; each header value is "${MASK}".` });

const SAMPLE = { runId: 'x', runName: 'x', scheduleId: 'x', scheduledFor: 0, attempt: 1 };

function urlFault(value: string): string | null {
  const authority = /^https?:\/\/([^/?#\\]*)/i.exec(value)?.[1];
  if (authority === undefined) return 'must be an absolute http or https URL';
  if (/[\s\p{Cc}]/u.test(value)) return 'must not have white space or control characters';
  if (authority.includes('{{')) return 'must have templates in its path and query only';
  if (authority.includes('@')) return 'must not have credentials; send them in a header';
  const unknown = unknownTemplates(value);
  if (unknown !== null) return unknown;
  return URL.canParse(renderTemplate(value, SAMPLE)) ? null : 'must be a URL';
}

function headerFaults(headers: Record<string, string>): [name: string, fault: string][] {
  const seen = new Set<string>();
  return Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    const fault = headerFault(name, value) ?? unknownTemplates(value);
    const again = seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    if (fault !== null) return [[name, fault]];
    return again ? [[name, 'is there in another letter case too']] : [];
  });
}

function unknownTemplates(value: string): string | null {
  const unknown = findUnknownTemplates(value);
  if (unknown.length === 0) return null;
  const named = unknown.slice(0, 5).map((name) => `{{${name}}}`);
  return `has an unknown template ${named.join(' ')}; known: ${templates}`;
}
