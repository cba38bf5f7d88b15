import { JsonText, faultOfJson, stringifyJson } from '../../api/json.ts';
import { NO_SECRETS, type SecretDraft, secretDraftOf, secretsOf } from '../forms/pair.ts';
import type { AnsweredHttpTarget, Problem } from '../../../../clients/typescript/src/generated/types.gen.ts';

export type Fault = NonNullable<Problem['errors']>[number];
type Stored = Pick<AnsweredHttpTarget, 'body' | 'outcome'>;

/** What is typed of the body and of the rules for answers. */
export interface EndpointDraft extends Rules {
  bodyKind: 'envelope' | 'payload' | 'template';
  template: string;
  contentType: string;
  bodySecrets: SecretDraft;
}

interface Rules {
  /** Statuses; as `retryOn` and `failOn`. */
  succeedOn: string;
  retryOn: string;
  failOn: string;
  required: '' | 'pointer' | 'contains';
  pointer: string;
  /** JSON. */
  equals: string;
  contains: string;
  otherwise: '' | 'retry' | 'fail';
}

const NO_RULES: Rules = {
  succeedOn: '',
  retryOn: '',
  failOn: '',
  required: '',
  pointer: '',
  equals: '',
  contains: '',
  otherwise: '',
};

export const EMPTY_ENDPOINT: EndpointDraft = {
  ...NO_RULES,
  bodyKind: 'envelope',
  template: '',
  contentType: 'application/json',
  bodySecrets: NO_SECRETS,
};

export function endpointDraftOf({ body, outcome }: Stored): EndpointDraft {
  if (typeof body === 'string') return { ...EMPTY_ENDPOINT, bodyKind: body, ...rulesOf(outcome) };
  const { secrets = {}, ...text } = body;
  const written = { bodyKind: 'template' as const, ...text, bodySecrets: secretDraftOf(secrets) };
  return { ...EMPTY_ENDPOINT, ...written, ...rulesOf(outcome) };
}

function rulesOf(outcome: Stored['outcome']): Rules {
  if (outcome === null) return NO_RULES;
  const { succeed, retry, fail, require: required, otherwise } = outcome;
  return {
    ...NO_RULES,
    ...{ succeedOn: succeed.join(', '), retryOn: retry.join(', '), failOn: fail.join(', ') },
    ...(required !== null && 'contains' in required && { required: 'contains', ...required }),
    ...(required !== null &&
      'pointer' in required && {
        required: 'pointer',
        pointer: required.pointer,
        equals: stringifyJson(required.equals),
      }),
    otherwise: otherwise ?? '',
  };
}

/** What to send. Rules that were not touched go as they are in `kept`. */
export function endpointOf(draft: EndpointDraft, kept: Stored | null): { body: unknown; outcome: unknown } {
  const { bodyKind, template, contentType } = draft;
  const typed = contentType.trim() === '' ? {} : { contentType: contentType.trim() };
  const secrets = secretsOf(draft.bodySecrets);
  const body =
    bodyKind === 'template' ? { template, ...typed, ...(Object.keys(secrets).length > 0 && { secrets }) } : bodyKind;
  return { body, outcome: kept && !isTouched(draft, kept) ? kept.outcome : outcomeOf(draft, kept) };
}

function isTouched(draft: EndpointDraft, { outcome }: Stored): boolean {
  return Object.entries(rulesOf(outcome)).some(([name, text]) => draft[name as keyof Rules] !== text);
}

function outcomeOf(draft: EndpointDraft, kept: Stored | null): unknown {
  const names = ['succeedOn', 'retryOn', 'failOn', 'required', 'otherwise'] as const;
  if (names.every((name) => draft[name].trim() === '')) return null;
  return {
    ...kept?.outcome,
    succeed: statusesOf(draft.succeedOn),
    retry: statusesOf(draft.retryOn),
    fail: statusesOf(draft.failOn),
    require: requireOf(draft),
    otherwise: draft.otherwise || null,
  };
}

/** What is no status goes as it is, so that the daemon says so. */
function statusesOf(text: string): (number | string)[] {
  return linesOf(text).map((one) => (/^\d+$/.test(one) ? Number(one) : one));
}

function requireOf({ required, pointer, equals, contains }: EndpointDraft): unknown {
  if (required === '') return null;
  return required === 'contains' ? { contains } : { pointer, equals: new JsonText(equals.trim()) };
}

/** What cannot be sent at all, and so the daemon cannot say. */
export function endpointFaults({ required, equals }: EndpointDraft): Fault[] {
  if (required !== 'pointer') return [];
  const fault = equals.trim() === '' ? 'is required' : faultOfJson(equals);
  return fault === null ? [] : [{ path: '/target/outcome/require/equals', message: fault }];
}

/** What is apart by white space or commas. */
export function linesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((line) => line !== '');
}
