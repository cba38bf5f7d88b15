/**
 * Writes web/src/api/generated/types.gen.ts, the types of the API, from openapi/openapi.json; with --check, fails when
 * the committed file is not that.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@hey-api/openapi-ts';

const root = join(import.meta.dirname, '..');
const file = join(root, 'web', 'src', 'api', 'generated', 'types.gen.ts');
const types = await render();

if (!process.argv.includes('--check')) {
  await writeFile(file, types);
} else if ((await readFile(file, 'utf8').catch(() => '')) === types) {
  console.log('web/src/api/generated/types.gen.ts is up to date with the OpenAPI document.');
} else {
  console.error(
    'web/src/api/generated/types.gen.ts is stale. Run `npm run web:types` and commit what it writes.',
  );
  process.exitCode = 1;
}

async function render(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'firelock-types-'));
  try {
    await createClient({
      input: join(root, 'openapi', 'openapi.json'),
      output: { path: directory },
      plugins: [{ name: '@hey-api/typescript', comments: false }],
      logs: { level: 'silent' },
    });
    return await readFile(join(directory, 'types.gen.ts'), 'utf8');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
