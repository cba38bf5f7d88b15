/**
 * Writes docs/configuration.md (from .env.example, which the tests compare with src/config/variables.ts), docs/api.md (from
 * openapi/openapi.json) and docs/messages.md (from the source). With `--check` it only fails where one of them is out of date.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { apiReference } from './support/api-reference.ts';
import { configurationReference } from './support/configuration-reference.ts';
import { messagesReference } from './support/messages/messages-reference.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const pages = {
  'docs/configuration.md': configurationReference(read('.env.example')),
  'docs/api.md': apiReference(JSON.parse(read('openapi/openapi.json'))),
  'docs/messages.md': messagesReference(root, globSync('src/**/*.ts', { cwd: root }).sort()),
};

for (const [path, text] of Object.entries(pages)) {
  const file = join(root, path);
  const formatted = await format(text, { ...(await resolveConfig(file)), parser: 'markdown' });
  if (!process.argv.includes('--check')) writeFileSync(file, formatted);
  else if (textOf(file) === formatted) console.log(`${path} is up to date.`);
  else {
    console.error(`${path} is out of date. Run \`npm run reference\` and commit what it writes.`);
    process.exitCode = 1;
  }
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}
