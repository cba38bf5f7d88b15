import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiReference } from './api-reference.ts';
import { commandsReference } from './commands-reference.ts';
import { configurationReference } from './configuration-reference.ts';
import { messagesReference } from './messages/messages-reference.ts';

/** The pages that are made from .env.example, openapi/openapi.json, the help of commands and the source, by their names below dist/reference/. */
export function referencePages(root: string): Record<string, string> {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const pages = {
    'configuration.md': configurationReference(read('.env.example')),
    'api.md': apiReference(JSON.parse(read('openapi/openapi.json'))),
    'commands.md': commandsReference(),
    'messages.md': messagesReference(root, globSync('src/**/*.ts', { cwd: root }).sort()),
  };
  return Object.fromEntries(Object.entries(pages).map(([name, text]) => [name, fromThere(text)]));
}

/** Links to pages are written as in docs/. */
function fromThere(text: string): string {
  return text.replaceAll(/\]\((?=[\w-]+\.md)/g, '](../../docs/');
}
