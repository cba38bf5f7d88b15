import { parseKeepingDigits } from '../../core/json-text.ts';
import type {
  BodyTemplate,
  HttpCall,
  HttpTarget,
  OutcomeRules,
  ScheduleTarget,
} from '../../core/schedules/schedule.ts';
import { type Credential, type SecretFile, isSecretFile } from '../../core/secrets/sealed-values.ts';
import { MASK } from './http-call-schemas.ts';

/** A target with its header values and secrets masked. Answers never decrypt anything. */
export function answerTarget(target: ScheduleTarget) {
  if (target.type === 'none') return null;
  return target.type === 'pull' ? { type: target.type, queue: target.queue } : answerHttpTarget(target);
}

export function answerHttpTarget(target: HttpTarget) {
  const { type, connection, body, outcome, secret, lookup, cancel } = target;
  return {
    type,
    connection,
    ...masked(target),
    body: typeof body === 'string' ? body : maskedBody(body),
    outcome: outcome && { ...outcome, require: answeredRule(outcome.require) },
    secret: Array.isArray(secret) ? secret.map(() => MASK) : secret && MASK,
    lookup: lookup && masked(lookup),
    cancel: cancel && masked(cancel),
  };
}

export interface AnsweredRules extends Omit<OutcomeRules, 'require'> {
  require: ReturnType<typeof answeredRule>;
}

function answeredRule(rule: OutcomeRules['require']) {
  if (rule === null || 'contains' in rule) return rule;
  return { pointer: rule.pointer, equals: parseKeepingDigits(rule.json) };
}

function maskedBody({ secrets, ...text }: BodyTemplate<Credential>): BodyTemplate<string | { file: string }> {
  if (secrets === undefined) return text;
  return {
    ...text,
    secrets: Object.fromEntries(Object.entries(secrets).map(([name, one]) => [name, answerCredential(one)])),
  };
}

/** Names of files are no secret. */
export function answerCredential(value: Credential): string | Pick<SecretFile, 'file'> {
  return isSecretFile(value) ? { file: value.file } : MASK;
}

function masked({ url, method, headers }: HttpCall): HttpCall<string> {
  return { url, method, headers: maskedAll(headers) };
}

function maskedAll(values: object): Record<string, string> {
  return Object.fromEntries(Object.keys(values).map((name) => [name, MASK]));
}
