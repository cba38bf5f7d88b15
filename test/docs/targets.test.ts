import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TEMPLATE_NAMES } from '../../src/core/http/template.ts';
import { beginRequest, prepareTarget } from '../../src/targets/http-request.ts';
import { secretOf } from '../support/signed.ts';
import { attemptOf } from '../targets/receivers.ts';
import { targetAt } from '../support/targets.ts';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'targets.md'), 'utf8');
const PROGRAM = /\]\(\.\.\/(examples\/receivers\/[\w.]+)\)/;
const BLOCK = /^```(?:js|python|go|bash)\n([^]*?)^```$/gm;

test('the receivers in the page are those in the examples, word for word', () => {
  const seen: string[] = [];
  for (const section of page.split(/^### /m)) {
    const file = PROGRAM.exec(section)?.[1];
    if (file === undefined) continue;
    const program = readFileSync(join(root, file), 'utf8');
    const blocks = [...section.matchAll(BLOCK)].map(([, block = '']) => block);
    expect(blocks).not.toEqual([]);
    for (const block of blocks) expect(program).toContain(block);
    seen.push(file.slice(file.lastIndexOf('.')));
  }
  expect(seen).toEqual(['.mjs', '.py', '.go', '.sh']);
});

test('the page names every field and every header that a handoff has, and every template', () => {
  const prepared = prepareTarget(targetAt('http://127.0.0.1/', { secret: secretOf(1) }), null);
  const dependency = { runId: 'a', status: 'succeeded', error: null, result: null };
  const attempt = { ...attemptOf(), dependencies: [dependency] } as Parameters<typeof beginRequest>[1];
  const request = beginRequest(prepared, attempt, {
    now: 0,
    userAgent: 'firelock/0',
    spanId: '0'.repeat(16),
  }).finish();
  const [, example = '{}'] = /^The body is JSON:\n\n```json\n([^]*?)^```$/m.exec(page) ?? [];
  const fields = (text: string) => Object.keys(JSON.parse(text) as object);
  expect(fields(example)).toEqual(fields(request.body ?? ''));
  const names = request.headers.filter((_, index) => index % 2 === 0);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  expect(TEMPLATE_NAMES.filter((name) => !page.includes(`\`{{${name}}}\``))).toEqual([]);
});
