import { isObject } from '../http/json/json-body.ts';
import {
  type Schemas,
  isInput,
  nameInlineSchemas,
  opened,
  shortName,
  withDiscriminators,
  withoutExamples,
  operationIdOf,
  type SchemaTree,
} from './schemas.ts';
import { EXAMPLES } from './examples.ts';
import { inPlainForm } from './plain-schemas.ts';
import { isProblem, sharedAnswers, withoutRepeats } from './shared-parts.ts';

/** Turns the plugin's description of the routes into the document from which clients and dashboards are generated. */
export function finishDocument<Document extends object>(made: Document): Document {
  const document = tidy(made) as SchemaTree;
  const components = isObject(document['components']) ? document['components'] : {};
  const schemas: Schemas = new Map(
    Object.entries(isObject(components['schemas']) ? components['schemas'] : {}),
  );
  const operations = operationsOf(document);
  for (const operation of operations) {
    nameInlineSchemas(operation, schemas);
    addExamples(operation);
    addHeaders(operation);
  }
  const shared = { ...components, responses: sharedAnswers(operations) };
  const finished = [...schemas].map(([name, schema]) => {
    const tidied = isInput(name) ? withoutExamples(schema) : opened(schema);
    return [name, withDiscriminators(inPlainForm(tidied), schemas)] as const;
  });
  const named = withUsedSchemas(document, shared, withoutRepeats(new Map(finished)));
  return JSON.parse(renamed(JSON.stringify(named))) as Document;
}

/**
 * Removes what no reader needs (the bounds of JavaScript's whole numbers), and marks optional bodies, which the plugin
 * cannot do.
 */
function tidy(document: object): unknown {
  const text = JSON.stringify(document, (key, value: unknown) => {
    const isBound =
      (key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
    if (isObject(value) && 'x-body-optional' in value) return withOptionalBody(value);
    return isBound ? undefined : value;
  });
  return JSON.parse(text);
}

function withOptionalBody(operation: SchemaTree): SchemaTree {
  const body = operation['requestBody'];
  const requestBody = isObject(body) ? { ...body, required: false } : body;
  return { ...operation, 'x-body-optional': undefined, requestBody };
}

function operationsOf({ paths }: SchemaTree): SchemaTree[] {
  const methods = Object.values(isObject(paths) ? paths : {}).filter(isObject);
  return methods.flatMap((operations) => Object.values(operations).filter(isObject));
}

/** Every registered schema has two forms, as sent and as answered; most are needed in one form only. */
function withUsedSchemas(
  { paths, ...rest }: SchemaTree,
  components: SchemaTree,
  schemas: Schemas,
): SchemaTree {
  const used = new Map<string, unknown>();
  const visit = (text: string): void => {
    for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name) || !schemas.has(name)) continue;
      used.set(name, schemas.get(name));
      visit(JSON.stringify(schemas.get(name)));
    }
  };
  visit(JSON.stringify([paths, components['responses']]));
  const sorted = [...used].sort(([a], [b]) => (shortName(a) < shortName(b) ? -1 : 1));
  const named = sorted.map(([name, schema]) => [shortName(name), schema]);
  return { ...rest, components: { ...components, schemas: Object.fromEntries(named) as SchemaTree }, paths };
}

function renamed(text: string): string {
  return text.replace(/(?<="#\/components\/schemas\/)[^"]+/g, shortName);
}

/** Whole bodies, beside the schema of the body. */
function addExamples(operation: SchemaTree): void {
  const examples = EXAMPLES[operationIdOf(operation)];
  const body = operation['requestBody'];
  const content = isObject(body) ? body['content'] : undefined;
  if (examples === undefined || !isObject(content)) return;
  for (const media of Object.values(content)) if (isObject(media)) media['examples'] = examples;
}

const HEADERS: Readonly<Record<string, SchemaTree>> = {
  401: { 'WWW-Authenticate': { description: 'Always `Bearer`.', schema: { type: 'string' } } },
  429: { 'Retry-After': retryAfter() },
  503: { 'Retry-After': retryAfter() },
};

/** Headers of the refusals that all of the API shares. */
function addHeaders(operation: SchemaTree): void {
  const { responses } = operation;
  for (const [status, headers] of Object.entries(HEADERS)) {
    const response = isObject(responses) ? responses[status] : undefined;
    if (isProblem(response)) response['headers'] = headers;
  }
}

function retryAfter(): SchemaTree {
  return {
    description: 'Seconds after which to try again.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  };
}
