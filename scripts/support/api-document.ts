import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sourcesHash } from './sources-hash.ts';

const root = join(import.meta.dirname, '..', '..');
const folder = join(root, 'openapi');
const [file, mark] = [join(folder, 'openapi.json'), join(folder, 'SOURCES')];

/** The OpenAPI document, as it then stands in openapi/openapi.json: written anew where the sources or that file have changed. */
export async function apiDocument(): Promise<string> {
  const sources = await sourcesHash(root, [
    ...['src', 'package.json', 'package-lock.json', 'scripts/support/render-document.ts'],
  ]);
  const markOf = (document: string) => `${sources} ${createHash('sha256').update(document).digest('hex')}\n`;
  const [there, made] = await Promise.all([file, mark].map((path) => readFile(path, 'utf8').catch(() => '')));
  if (there !== undefined && made === markOf(there)) return there;
  // Most of what a daemon imports.
  const { renderDocument } = await import('./render-document.ts');
  const document = await renderDocument();
  await mkdir(folder, { recursive: true });
  // The mark last, and whatever reads a file at this moment finds it whole.
  for (const [path, text] of [
    [file, document],
    [mark, markOf(document)],
  ] as const) {
    const draft = `${path}.${process.pid}`;
    await writeFile(draft, text);
    await rename(draft, path);
  }
  return document;
}
