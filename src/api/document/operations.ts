import { isObject } from '../http/json/json-body.ts';
import { EXAMPLES } from './examples/examples.ts';
import { operationIdOf } from './schemas.ts';

type Tree = Record<string, unknown>;

/** Whole bodies, beside the schema of the body. */
export function addExamples(operation: Tree): void {
  const examples = EXAMPLES[operationIdOf(operation)];
  const body = operation['requestBody'];
  const content = isObject(body) ? body['content'] : undefined;
  if (examples === undefined || !isObject(content)) return;
  for (const media of Object.values(content)) if (isObject(media)) media['examples'] = examples;
}

const HEADERS: Readonly<Record<string, Tree>> = {
  401: { 'WWW-Authenticate': { description: 'Always `Bearer`.', schema: { type: 'string' } } },
  429: { 'Retry-After': retryAfter() },
  503: { 'Retry-After': retryAfter() },
};

/** Headers of the refusals that all of the API shares. */
export function addHeaders(operation: Tree): void {
  const { responses } = operation;
  for (const [status, headers] of Object.entries(HEADERS)) {
    const response = isObject(responses) ? responses[status] : undefined;
    if (isObject(response) && isProblem(response)) response['headers'] = headers;
  }
}

function isProblem(response: Tree): boolean {
  return isObject(response['content']) && 'application/problem+json' in response['content'];
}

function retryAfter(): Tree {
  return {
    description: 'Seconds after which to try again.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  };
}
