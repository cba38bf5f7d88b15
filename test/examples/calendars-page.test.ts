import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, startApi } from '../api/api.ts';

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'calendars.md');
/** A command, and what it prints at least. */
const EXAMPLE = /```sh\n([^`]+)```\n\n```json\n([^`]+)```/g;

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

it('the commands of docs/calendars.md answer what the page says', async () => {
  const examples = [...readFileSync(PAGE, 'utf8').matchAll(EXAMPLE)];
  expect(examples).toHaveLength(4);
  for (const [, command = '', answer = ''] of examples) {
    const here = command.replaceAll('http://127.0.0.1:8080', api.url);
    const { stdout } = await promisify(execFile)('sh', ['-c', here]);
    expect(JSON.parse(stdout)).toMatchObject(JSON.parse(answer) as object);
  }
});
