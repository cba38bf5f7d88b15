interface Schema extends Bounds {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  default?: unknown;
  required?: string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
}

interface Bounds {
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

type Content = Record<string, { schema?: Schema }>;

interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { content?: Content };
  responses?: Record<string, { description?: string; content?: Content }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
}

const HEAD = `# The API

For callers of the API. Each instance serves the same document at \`/openapi.json\`, and a page to try it out at \`/docs\`;
\`npm run reference\` writes this page from \`openapi.json\`, which it puts beside it. Errors are
\`application/problem+json\` and name every fault at once: 400 malformed or invalid, 401 and 403 no token or not its role, 404
unknown, 405 not a method of this path, 408 too slow, 409 not possible in this state, 412 a stale \`If-Match\`, 413 and 431 too
large, 415 another media type, 422 well-formed but impossible, 429 too many calls, 503 the database is away.
Generators of clients can read the document: \`npm run clients:check\` makes a Go client by oapi-codegen and a Python client
by openapi-python-client, and uses them. [guide.md](guide.md) begins with examples.
Below the calls stand the [objects](#objects) that they take and answer.`;

/** The operations of an OpenAPI document by their tags, with parameters, bodies and answers. */
export function apiReference(document: unknown): string {
  const { paths, components = {} } = document as Document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? 'other'))];
  const sections = tags.flatMap((tag) => [
    `## ${tag}`,
    ...operations
      .filter(({ operation }) => (operation.tags?.[0] ?? 'other') === tag)
      .map(({ path, method, operation }) => operationText(path, method, operation, components.schemas ?? {})),
  ]);
  const objects = Object.entries(components.schemas ?? {}).map(([name, schema]) => objectText(name, schema));
  return `${[HEAD, ...sections, '## Objects', ...objects].join('\n\n')}\n`;
}

function operationText(path: string, method: string, operation: Operation, schemas: Record<string, Schema>): string {
  const parts = [`### ${method.toUpperCase()} ${path}`];
  const prose = [operation.summary, operation.description].filter((text) => text !== undefined);
  if (prose.length > 0) parts.push(prose.map(sentence).join(' '));
  const parameters = operation.parameters ?? [];
  if (parameters.length > 0) {
    const rows = parameters.map(
      ({ name, in: place, required = false, description = '', schema = {} }) =>
        `| \`${name}\` | ${place}${required ? ', required' : ''} | ${valueOf(schema)} | ${cell(description || (schema.description ?? ''))} |`,
    );
    parts.push(['| parameter | in | type | what it is |', '| --- | --- | --- | --- |', ...rows].join('\n'));
  }
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  if (body !== undefined) parts.push(bodyText(body, schemas));
  const answers = Object.entries(operation.responses ?? {}).map(([status, answer]) => answerText(status, answer));
  if (answers.length > 0) parts.push(`Answers: ${answers.join(' · ')}`);
  return parts.join('\n\n');
}

function answerText(
  status: string,
  { description = '', content = {} }: { description?: string; content?: Content },
): string {
  if (Number(status) >= 400) return `\`${status}\``;
  const [schema] = Object.values(content).flatMap((one) => one.schema ?? []);
  return `\`${status}\` ${cell(description)}${schema === undefined ? ', without a body' : `: ${typeOf(schema)}`}`;
}

function bodyText(schema: Schema, schemas: Record<string, Schema>): string {
  return fieldsText('field of the body', resolved(schema, schemas)) ?? `Body: ${typeOf(schema)}`;
}

function objectText(name: string, schema: Schema): string {
  const parts = [`### ${name}`];
  if (schema.description !== undefined) parts.push(sentence(cell(schema.description)));
  parts.push(fieldsText('field', schema) ?? sentence(`It is ${valueOf(schema)}`));
  return parts.join('\n\n');
}

/** Null: it has none. */
function fieldsText(heading: string, { properties = {}, required = [] }: Schema): string | null {
  const rows = Object.entries(properties).map(
    ([name, field]) =>
      `| \`${name}\`${required.includes(name) ? ', required' : ''} | ${valueOf(field)} | ${cell(field.description ?? '')} |`,
  );
  if (rows.length === 0) return null;
  return [`| ${heading} | type | what it is |`, '| --- | --- | --- |', ...rows].join('\n');
}

/** Its type, its bounds and its default. */
function valueOf(schema: Schema): string {
  const byDefault = schema.default === undefined ? '' : `; default \`${cell(JSON.stringify(schema.default))}\``;
  return typeOf(schema) + byDefault;
}

function resolved(schema: Schema, schemas: Record<string, Schema>): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (schemas[name] ?? {});
}

function typeOf(schema: Schema): string {
  const named = schema.$ref?.split('/').at(-1);
  if (named !== undefined) return `[${named}](#${named.toLowerCase()})`;
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(' or ');
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}${boundsOf(schema)}`;
  const { additionalProperties: values } = schema;
  if (typeof values === 'object' && Object.keys(values).length > 0)
    return `object whose values are ${typeOf(values)}${boundsOf(schema)}`;
  return [schema.type ?? 'any'].flat().join(' or ') + boundsOf(schema);
}

/** As a text: numbers of 32 or 64 bits are bounded anyway. */
function boundsOf(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, maxProperties } = schema;
  const ranges = [
    [minimum, maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum, ''],
    [minLength, maxLength, ' characters'],
    [minItems, maxItems, ' items'],
    [undefined, maxProperties, ' members'],
  ] as const;
  return ranges.map(([least, most, unit]) => rangeText(least, most, unit)).join('');
}

function rangeText(least: number | undefined, most: number | undefined, unit: string): string {
  if (most === undefined)
    return (least ?? 0) === 0 && unit !== '' ? '' : least === undefined ? '' : `, from ${least}${unit}`;
  return least === undefined ? `, up to ${most}${unit}` : `, ${least} to ${most}${unit}`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/\s+/g, ' ').trim();
}

function sentence(text: string): string {
  return /[.!?]$/.test(text.trim()) ? text.trim() : `${text.trim()}.`;
}
