interface Schema {
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
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { content?: Record<string, { schema?: Schema }> };
  responses?: Record<string, { description?: string }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
}

const HEAD = `# The API

For callers of the API. Each instance serves the same document at \`/openapi.json\`, and a page to try it out at \`/docs\`;
\`npm run reference\` writes this page from [openapi/openapi.json](../../openapi/openapi.json). Errors are
\`application/problem+json\` and name every fault at once: 400 malformed or invalid, 401 and 403 no token or not its role, 404
unknown, 405 not a method of this path, 408 too slow, 409 not possible in this state, 412 a stale \`If-Match\`, 413 and 431 too
large, 415 another media type, 422 well-formed but impossible, 429 too many calls, 503 the database is away.
Generators of clients can read the document: \`npm run clients:check\` makes a Go client by oapi-codegen and a Python client
by openapi-python-client, and uses them. [guide.md](guide.md) begins with examples.`;

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
  return `${[HEAD, ...sections].join('\n\n')}\n`;
}

function operationText(
  path: string,
  method: string,
  operation: Operation,
  schemas: Record<string, Schema>,
): string {
  const parts = [`### ${method.toUpperCase()} ${path}`];
  const prose = [operation.summary, operation.description].filter((text) => text !== undefined);
  if (prose.length > 0) parts.push(prose.map(sentence).join(' '));
  const parameters = operation.parameters ?? [];
  if (parameters.length > 0) {
    const rows = parameters.map(
      ({ name, in: place, required = false, description = '', schema = {} }) =>
        `| \`${name}\` | ${place}${required ? ', required' : ''} | ${typeOf(schema)} | ${cell(description || (schema.description ?? ''))} |`,
    );
    parts.push(['| parameter | in | type | what it is |', '| --- | --- | --- | --- |', ...rows].join('\n'));
  }
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  if (body !== undefined) parts.push(bodyText(body, schemas));
  const answers = Object.entries(operation.responses ?? {}).map(([status, { description = '' }]) =>
    Number(status) < 400 ? `\`${status}\` ${cell(description)}` : `\`${status}\``,
  );
  if (answers.length > 0) parts.push(`Answers: ${answers.join(' · ')}`);
  return parts.join('\n\n');
}

function bodyText(schema: Schema, schemas: Record<string, Schema>): string {
  const body = resolved(schema, schemas);
  const rows = Object.entries(body.properties ?? {}).map(([name, field]) => {
    const { description = '' } = { ...resolved(field, schemas), ...field };
    const isRequired = body.required?.includes(name) ?? false;
    return `| \`${name}\`${isRequired ? ', required' : ''} | ${typeOf(field)} | ${cell(description)} |`;
  });
  if (rows.length === 0) return `Body: ${typeOf(schema)}`;
  return ['| field of the body | type | what it is |', '| --- | --- | --- |', ...rows].join('\n');
}

function resolved(schema: Schema, schemas: Record<string, Schema>): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (schemas[name] ?? {});
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return schema.$ref.split('/').at(-1) ?? '';
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(' or ');
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/\s+/g, ' ').trim();
}

function sentence(text: string): string {
  return /[.!?]$/.test(text.trim()) ? text.trim() : `${text.trim()}.`;
}
