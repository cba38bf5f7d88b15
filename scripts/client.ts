/**
 * Writes clients/typescript/src/generated/ from the OpenAPI document, unless it was made of that: the types of the API, and a table of its
 * operations. Neither is in git: `npm ci`, the tests and the checks call this, which writes both.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { apiDocument } from './support/api-document.ts';
import { clientOperations } from './support/client-operations.ts';
import { type Document, clientTypes } from './support/client-types.ts';
import { sourcesHash } from './support/sources-hash.ts';

const root = join(import.meta.dirname, '..');
const directory = join(root, 'clients', 'typescript', 'src', 'generated');
const written = await apiDocument();
const hash = await sourcesHash(root, [
  ...[
    'openapi/openapi.json',
    'scripts/client.ts',
    'scripts/support/client-operations.ts',
    'scripts/support/client-types.ts',
  ],
]);
/** Written last, so that all is there if it is. */
const [types, made] = [join(directory, 'types.gen.ts'), `\n// of ${hash}\n`];
const isFresh = (await readFile(types, 'utf8').catch(() => '')).endsWith(made);

if (!isFresh) await write();

async function write(): Promise<void> {
  const document = JSON.parse(written) as Document;
  const files = {
    'operations.gen.ts': clientOperations(document.paths),
    'types.gen.ts': `${clientTypes(document)}${made}`,
  };
  await mkdir(directory, { recursive: true });
  // Whatever reads a file at this moment finds it whole.
  for (const [name, text] of Object.entries(files)) {
    const draft = join(directory, `${name}.${process.pid}`);
    await writeFile(draft, text);
    await rename(draft, join(directory, name));
  }
}
