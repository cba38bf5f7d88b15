/** Writes dist/reference/: configuration.md, api.md, commands.md and messages.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { referencePages } from './support/reference-pages.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist', 'reference');

mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(referencePages(root))) writeFileSync(join(folder, name), text);
