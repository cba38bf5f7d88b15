import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiReference } from '../../scripts/support/api-reference.ts';
import { root } from './blocks.ts';

interface Document {
  components: { schemas: Record<string, object> };
  paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>;
}

const document = JSON.parse(readFileSync(join(root, 'openapi', 'openapi.json'), 'utf8')) as Document;
const page = apiReference(document);

test('the page of the API names the body of each answer, and has every object', () => {
  const answers = page.split('\n').filter((line) => line.startsWith('Answers: '));
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  expect(answers).toHaveLength(operations.length);
  const good = answers
    .flatMap((line) => line.slice('Answers: '.length).split(' · '))
    .filter((one) => one.startsWith('`2'));
  expect(good.filter((one) => !/(: \[\w+\]\(#\w+\)|: string|, without a body)$/.test(one))).toEqual([]);
  const objects = Object.keys(document.components.schemas);
  expect(objects.filter((name) => !page.includes(`\n### ${name}\n`))).toEqual([]);
});

test('it says the bounds and the default of a field', () => {
  const row = (object: string, field: string) => {
    const [, section = ''] = page.split(`\n### ${object}\n`);
    return section.split('\n').find((line) => line.startsWith(`| \`${field}\``));
  };
  expect(row('ScheduleInput', 'timeoutSeconds')).toMatch(/number, 1 to \d+; default `30`/);
  expect(row('BodyTemplateInput', 'template')).toContain('string, up to 65536 characters');
  expect(row('LimitInput', 'maxRunning')).toContain('integer, 1 to 10000');
});
