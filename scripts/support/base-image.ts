import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The image that the Dockerfile builds on: the name in its FROM, and by `digest` the very one. */
export function baseImage(digest?: string): string {
  const dockerfile = readFileSync(join(import.meta.dirname, '..', '..', 'Dockerfile'), 'utf8');
  const node = /^ARG NODE_VERSION=(.+)$/m.exec(dockerfile)?.[1];
  assert.ok(node, 'the Dockerfile names no version of Node');
  const name = `node:${node}-slim`;
  if (digest === undefined) return name;
  assert.match(digest, /^sha256:[0-9a-f]{64}$/, 'the digest of the base image');
  return `${name}@${digest}`;
}
