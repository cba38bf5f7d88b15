interface Schema {
  $ref?: string;
  description?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | false;
  required?: string[];
  readOnly?: boolean;
  if?: Schema;
}

interface Answer {
  $ref?: string;
  description?: string;
  content?: Record<string, { schema: Schema }>;
}

interface Operation {
  operationId: string;
  parameters?: { in: string; name: string; required?: boolean; description?: string; schema: Schema }[];
  requestBody?: { required?: boolean; description?: string; content: Record<string, { schema: Schema }> };
  responses: Record<string, Answer>;
}

export interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** A member of a type: its name as it is written there, and what it says of itself. */
type Member = readonly [name: string, type: string, description?: string | undefined];

/** Any JSON in an answer is a JsonText for the client, which keeps every digit (clients/typescript/src/json-text.ts). */
const TEXTS = /^( +(?:payload|before|after)): unknown;$/gm;
/**
 * Run, WholeRun, ClaimedRun, Schedule, ListedSchedule, VersionedSchedule; and a change of a field before and after, of schedules,
 * calendars, limits, connections and notifiers.
 */
const PLACES = 16;

/** clients/typescript/src/generated/types.gen.ts: a type for each schema, and for what each operation takes and answers. */
export function clientTypes({ paths, components: { schemas } }: Document): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).flatMap((operation) => typesOfOperation(path, operation)),
  );
  const types = [
    ...Object.entries(schemas).map(([name, schema]) =>
      declared(name, typeOf(schema, ''), schema.description),
    ),
    ...operations,
  ].join('\n\n');
  const places = types.match(TEXTS)?.length ?? 0;
  if (places !== PLACES)
    throw new Error(`${places} places of any JSON in answers: does the client keep all as text?`);
  return [
    '// This file is written by `npm run client` from the OpenAPI document.',
    "import type { JsonText } from '../json-text.ts';",
    `${types.replaceAll(TEXTS, '$1: JsonText;')}\n`,
  ].join('\n\n');
}

/** Problems are thrown, whatever their status: only what an operation answers by itself is a type. */
function typesOfOperation(path: string, { operationId, parameters = [], requestBody, responses }: Operation) {
  const name = operationId.charAt(0).toUpperCase() + operationId.slice(1);
  const taken = (['headers', 'path', 'query'] as const).flatMap((place): Member[] => {
    const own = parameters.filter(
      (parameter) => `${parameter.in}${place === 'headers' ? 's' : ''}` === place,
    );
    if (own.length === 0) return place === 'headers' ? [] : [[`${place}?`, 'never']];
    const members = own.map((one): Member => [
      optional(one.name, one.required),
      typeOf(one.schema, INDENT.repeat(2)),
      one.description ?? one.schema.description,
    ]);
    return [
      [
        optional(
          place,
          own.some(({ required }) => required),
        ),
        block(members, INDENT),
      ],
    ];
  });
  const body: Member = requestBody
    ? [optional('body', requestBody.required), contentOf(requestBody.content), requestBody.description]
    : ['body?', 'never'];
  const answers = Object.entries(responses).filter(([, { $ref }]) => $ref === undefined);
  const good = answers.filter(([status]) => status.startsWith('2'));
  return [
    declared(`${name}Data`, block([body, ...taken, ['url', `'${path}'`]], '')),
    ...answersOf(
      `${name}Error`,
      answers.filter((one) => !good.includes(one)),
    ),
    ...answersOf(`${name}Response`, good),
  ];
}

function answersOf(name: string, answers: [status: string, Answer][]): string[] {
  if (answers.length === 0) return [];
  const members = answers.map(([status, { content, description }]): Member => [
    status,
    content ? contentOf(content) : 'void',
    description,
  ]);
  return [declared(`${name}s`, block(members, '')), declared(name, `${name}s[keyof ${name}s]`)];
}

function contentOf(content: Record<string, { schema: Schema }>): string {
  return [...new Set(Object.values(content).map(({ schema }) => typeOf(schema, INDENT)))].join(' | ');
}

const INDENT = '    ';

function typeOf(schema: Schema, indent: string): string {
  const { $ref, const: only, enum: some, type, anyOf, oneOf, allOf, if: rule, items } = schema;
  // Of which fields exclude each other, types can say more than the generators of other languages (src/api/document/document.ts).
  if (rule !== undefined) return `(${typeOf(rule, indent)}) & ${objectOf(schema, indent)}`;
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1);
  if (only !== undefined) return literal(only);
  if (some) return some.map(literal).join(' | ');
  if (schema.discriminator)
    return tagged(schema.discriminator.propertyName, schema.discriminator.mapping, indent);
  if (anyOf ?? oneOf) return [...new Set((anyOf ?? oneOf)?.map((one) => typeOf(one, indent)))].join(' | ');
  if (allOf) return allOf.map((one) => typeOf(one, indent)).join(' & ');
  if (type === 'array') return listOf(schema, typeOf(items ?? {}, indent));
  if (type === 'object' || schema.properties) return objectOf(schema, indent);
  return [type ?? 'unknown'].flat().join(' | ').replace('integer', 'number');
}

function listOf({ minItems, maxItems }: Schema, item: string): string {
  const isPair = minItems === 2 && maxItems === 2;
  return isPair ? `[${item}, ${item}]` : `Array<${item}>`;
}

function tagged(name: string, mapping: Record<string, string>, indent: string): string {
  return Object.entries(mapping)
    .map(([value, $ref]) => `(${block([[name, literal(value)]], indent)} & ${typeOf({ $ref }, indent)})`)
    .join(' | ');
}

/** Callers need not see what the daemon ignores: with it each input would have two types. */
function objectOf({ properties, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = indent + INDENT;
  const members = Object.entries(properties ?? {}).filter(([, { readOnly }]) => readOnly !== true);
  if (members.length === 0) {
    const other = additionalProperties === false ? 'never' : typeOf(additionalProperties ?? {}, inner);
    return block([['[key: string]', other]], indent);
  }
  return block(
    members.map(([name, schema]): Member => [
      optional(name, required.includes(name)),
      typeOf(schema, inner),
      schema.description ?? schema.items?.description,
    ]),
    indent,
  );
}

function block(members: readonly Member[], indent: string): string {
  const lines = members.flatMap(([name, type, description]) => [
    ...(description === undefined ? [] : [`/** ${description} */`]),
    `${name}: ${type};`,
  ]);
  return `{\n${lines.map((line) => `${indent}${INDENT}${line}\n`).join('')}${indent}}`;
}

function declared(name: string, type: string, description?: string): string {
  return `${description === undefined ? '' : `/** ${description} */\n`}export type ${name} = ${type};`;
}

function optional(name: string, required = false): string {
  const key = /^\w+$/.test(name) ? name : literal(name);
  return required ? key : `${key}?`;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}
