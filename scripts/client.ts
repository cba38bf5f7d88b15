/**
 * Writes clients/typescript/src/generated/ from the OpenAPI document, unless it was made of that: the types of the API, and a table of its
 * operations. Neither is in git: `npm ci`, the tests and the checks call this, which writes both.
 */
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiDocument } from './support/api-document.ts';
import { clientOperations } from './support/client-operations.ts';
import { sourcesHash } from './support/sources-hash.ts';

const root = join(import.meta.dirname, '..');
const directory = join(root, 'clients', 'typescript', 'src', 'generated');
const written = await apiDocument();
const hash = await sourcesHash(root, [
  ...['openapi/openapi.json', 'scripts/client.ts', 'scripts/support/client-operations.ts', 'package-lock.json'],
]);
/** Written last, so that all is there if it is. */
const [types, made] = [join(directory, 'types.gen.ts'), `\n// of ${hash}\n`];
const isFresh = (await readFile(types, 'utf8').catch(() => '')).endsWith(made);

if (!isFresh) await write();

async function write(): Promise<void> {
  const document = JSON.parse(written) as Document;
  const files = {
    'operations.gen.ts': clientOperations(document.paths),
    'types.gen.ts': `${await renderTypes(document)}${made}`,
  };
  await mkdir(directory, { recursive: true });
  // Whatever reads a file at this moment finds it whole.
  for (const [name, text] of Object.entries(files)) {
    const draft = join(directory, `${name}.${process.pid}`);
    await writeFile(draft, text);
    await rename(draft, join(directory, name));
  }
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, { $ref?: string }> }>>;
  components: { schemas: Record<string, Schema>; responses?: unknown };
}

interface Schema {
  properties?: Record<string, { readOnly?: boolean }>;
  if?: Schema;
  else?: unknown;
}

async function renderTypes(whole: Document): Promise<string> {
  const { createClient } = await import('@hey-api/openapi-ts');
  const output = await mkdtemp(join(tmpdir(), 'firelock-client-types-'));
  try {
    await createClient({
      input: forTypes(whole) as unknown as Record<string, unknown>,
      output: { path: output },
      plugins: ['@hey-api/typescript'],
      logs: { level: 'silent' },
    });
    return withTexts(await readFile(join(output, 'types.gen.ts'), 'utf8'));
  } finally {
    await rm(output, { recursive: true, force: true });
  }
}

/**
 * Callers need not see what the daemon ignores; and with it each input would have two types. Of which fields exclude each
 * other, types can say more than the generators of other languages (src/api/document/document.ts). Problems are thrown,
 * whatever their status.
 */
function forTypes(whole: Document): Document {
  const { paths, components } = structuredClone(whole);
  const schemas = Object.entries(components.schemas).map(([name, { if: rule, else: _, ...schema }]) => {
    const told = Object.entries(schema.properties ?? {}).filter(([, { readOnly }]) => readOnly !== true);
    const properties = schema.properties && { properties: Object.fromEntries(told) };
    return [name, { ...schema, ...properties, ...rule }] as const;
  });
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    const own = Object.entries(operation.responses).filter(([, { $ref }]) => $ref === undefined);
    operation.responses = Object.fromEntries(own);
  }
  return {
    ...whole,
    paths,
    components: { ...components, responses: {}, schemas: Object.fromEntries(schemas) },
  };
}

/** Any JSON in an answer is a JsonText for the client, which keeps every digit (clients/typescript/src/json-text.ts). */
function withTexts(types: string): string {
  const texts = types.replaceAll(/^( +(?:payload|before|after)): unknown;$/gm, '$1: JsonText;');
  const count = [...texts.matchAll(/: JsonText;/g)].length;
  // Run, WholeRun, ClaimedRun, Schedule, ListedSchedule, VersionedSchedule; and a change of a field before and after, of
  // schedules, calendars, limits, connections and notifiers.
  if (count !== 16) throw new Error(`${count} places of any JSON in answers: does the client keep all as text?`);
  const [first = '', ...rest] = texts.replaceAll(/\/\*\*\n *\* (.+)\n *\*\//g, '/** $1 */').split('\n');
  return [first, '', "import type { JsonText } from '../json-text.ts';", ...rest].join('\n');
}
