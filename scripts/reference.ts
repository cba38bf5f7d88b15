/** Writes dist/reference/: configuration.md, api.md, commands.md, messages.md, and the OpenAPI document. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiDocument } from './support/api-document.ts';
import { referencePages } from './support/reference-pages.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist', 'reference');

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'openapi.json'), await apiDocument());
for (const [name, text] of Object.entries(referencePages(root))) writeFileSync(join(folder, name), text);
