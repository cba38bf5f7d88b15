import { isObject } from '../http/json/json-body.ts';
import { PROBLEM_TYPE } from '../http/problem.ts';
import { EXAMPLES } from './examples.ts';
import {
  edited,
  isInput,
  nameInlineSchemas,
  opened,
  operationIdOf,
  type Schemas,
  type SchemaTree,
  shortName,
  withDiscriminators,
  withoutExamples,
} from './schemas.ts';

/** Turns the plugin's description of the routes into the document from which clients and dashboards are generated. */
export function finishDocument<Document extends object>(made: Document): Document {
  const document = tidy(made) as SchemaTree;
  const components = isObject(document['components']) ? document['components'] : {};
  const schemas: Schemas = new Map(Object.entries(isObject(components['schemas']) ? components['schemas'] : {}));
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
    const isBound = (key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
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
function withUsedSchemas({ paths, ...rest }: SchemaTree, components: SchemaTree, schemas: Schemas): SchemaTree {
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

/** Puts the problems that operations answer alike into `components/responses`, which it answers. */
export function sharedAnswers(operations: readonly SchemaTree[]): SchemaTree {
  const shared: SchemaTree = {};
  for (const { responses } of operations) {
    if (!isObject(responses)) continue;
    for (const [status, answer] of Object.entries(responses)) {
      if (!isProblem(answer)) continue;
      const name = `Problem${status}`;
      shared[name] ??= answer;
      if (JSON.stringify(shared[name]) === JSON.stringify(answer))
        responses[status] = { $ref: `#/components/responses/${name}` };
    }
  }
  return shared;
}

function isProblem(answer: unknown): answer is SchemaTree {
  return isObject(answer) && isObject(answer['content']) && PROBLEM_TYPE in answer['content'];
}

/** A body that is another one, but requires more fields, says just that. */
export function withoutRepeats(schemas: Schemas): Schemas {
  const inputs = [...schemas].filter(([name]) => isInput(name)).map(([name, schema]) => inParts(name, schema));
  const changed = inputs.flatMap((one): [string, SchemaTree][] => {
    const base = inputs.find((other) => other.text === one.text && isSubset(other.required, one.required));
    if (base === undefined) return [];
    const required = one.required.filter((field) => !base.required.includes(field));
    const fields = required.map((field) => [field, one.properties[field]]);
    const more = { type: 'object', properties: Object.fromEntries(fields) as SchemaTree, required };
    return [[one.name, { allOf: [{ $ref: `#/components/schemas/${base.name}` }, more] }]];
  });
  return new Map([...schemas, ...changed]);
}

function inParts(name: string, schema: unknown) {
  const { required, ...rest } = isObject(schema) ? schema : {};
  return {
    name,
    required: Array.isArray(required) ? (required as string[]) : [],
    properties: isObject(rest['properties']) ? rest['properties'] : {},
    text: JSON.stringify(rest),
  };
}

/** Has fewer members, all of them among the others. */
function isSubset(some: readonly string[], others: readonly string[]): boolean {
  return some.length < others.length && some.every((one) => others.includes(one));
}

/**
 * The same rules in forms from which generators of clients for other languages make code that compiles and works. What
 * fits a schema before fits it afterwards, and the other way round.
 */
export function inPlainForm(schema: unknown): unknown {
  return edited(schema, (one) => asRule(withNulls(withSize(withoutFillers(nullableInOne(one))))));
}

/**
 * An example that is null says nothing. Neither does a default that is null or an empty object, and generators write every
 * other default than a plain value of a plain type into their code as it stands in the document.
 */
function withoutFillers(schema: SchemaTree): SchemaTree {
  const hasPlainType = 'type' in schema && schema['type'] !== 'object';
  const isFiller = ([key, value]: [string, unknown]) =>
    (key === 'example' && value === null) || (key === 'default' && (value === null || !hasPlainType));
  return Object.fromEntries(Object.entries(schema).filter((entry) => !isFiller(entry)));
}

/** `{ anyOf: [{ type: 'string' }, { type: 'null' }] }` is `{ type: ['string', 'null'] }`. */
function nullableInOne(schema: SchemaTree): SchemaTree {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [value, none] = anyOf as unknown[];
  if (!isNull(none) || !isObject(value) || !SCALARS.has(value['type']) || 'enum' in value) return schema;
  return { ...value, ...rest, type: [value['type'], 'null'] };
}

const SCALARS: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean']);

/** How large a number may be, where it is not said: many languages would take it for one of 32 bits. */
function withSize(schema: SchemaTree): SchemaTree {
  const types = [schema['type']].flat();
  if (types.includes('number')) return { ...schema, format: 'double' };
  const isSmall = Number(schema['maximum'] ?? Infinity) < 2 ** 31;
  return types.includes('integer') && !isSmall ? { ...schema, format: 'int64' } : schema;
}

/** A field that is always null: not every language has a type that is only that. */
function withNulls(schema: SchemaTree): SchemaTree {
  const { properties } = schema;
  if (!isObject(properties)) return schema;
  const fields = Object.entries(properties).map(
    ([name, field]) => [name, isNull(field) ? { ...field, type: undefined, const: null } : field] as const,
  );
  return { ...schema, properties: Object.fromEntries(fields) };
}

/** Fields, and alternatives of what they may be together: as a type it is neither a record nor a choice, so it is a rule. */
function asRule(schema: SchemaTree): SchemaTree {
  const { oneOf, anyOf, ...rest } = schema;
  if (rest['properties'] === undefined || (oneOf === undefined && anyOf === undefined)) return schema;
  return { ...rest, if: oneOf === undefined ? { anyOf } : { oneOf }, else: { not: {} } };
}

function isNull(schema: unknown): schema is SchemaTree {
  return isObject(schema) && schema['type'] === 'null';
}
