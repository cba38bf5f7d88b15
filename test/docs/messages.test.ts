import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { expect, test } from 'vitest';
import { messagesReference } from '../../scripts/support/messages/messages-reference.ts';

const root = join(import.meta.dirname, '../..');

test('docs/messages.md lists every message of the source, and what to do about each that asks for it', async () => {
  const file = join(root, 'docs/messages.md');
  const paths = globSync('src/**/*.ts', { cwd: root }).sort();
  const page = await format(messagesReference(root, paths), {
    ...(await resolveConfig(file)),
    parser: 'markdown',
  });
  expect(page, 'run `npm run reference`').toBe(readFileSync(file, 'utf8'));
});
