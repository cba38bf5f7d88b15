import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/postgres-js';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { pageOfSchedules } from '../../src/store/schedules/search/find-schedules.ts';

const STORE = join(import.meta.dirname, '../../src/store');

/** What sends its last argument: methods, and functions of the store that are given a statement by others. */
const SENDERS = new Set([
  ...['execute', 'rowsOf', 'recordsOf', 'onlyColumnOf', 'queryPrepared', 'preparedRecordsOf', 'oneSample'],
]);
const OF_THE_BUILDER = new Set(['select', 'selectDistinct', 'insert', 'update', 'delete']);

test('every statement that the store sends begins with the name of a function of its file', () => {
  const sent = readdirSync(STORE, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => statementsIn(file));
  expect(sent.length).toBeGreaterThan(190);
  expect(sent.filter(({ isNamed }) => !isNamed).map(({ at }) => at)).toEqual([]);
});

test('a statement of the query builder begins with its name as well', () => {
  const { sql, params } = pageOfSchedules(drizzle.mock(), { text: 'a', limit: 7 }).toSQL();
  expect(sql).toMatch(/^-- listSchedules\nselect "schedules"\."uid"/);
  expect(params.at(-1)).toBe(7);
});

interface Sent {
  at: string;
  isNamed: boolean;
}

function statementsIn(file: string): Sent[] {
  const text = readFileSync(join(STORE, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const functions = new Set(
    source.statements.flatMap((one) => (ts.isFunctionDeclaration(one) ? [one.name?.text] : [])),
  );
  const found: Sent[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart());
      const at = `${file}:${line + 1}`;
      if (isOfTheBuilder(node)) found.push({ at, isNamed: functionAround(node) === 'select' });
      const last = node.arguments.at(-1);
      if (last && SENDERS.has(calleeOf(node)) && !isHandedOn(node, last)) {
        const [, name] = /^(?:sql|sql\.raw\()`-- (\w+)\n/.exec(last.getText()) ?? [];
        found.push({ at, isNamed: functions.has(name) });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Of `rowsOf(db)(statement)`: rowsOf; its inner call sends nothing. */
function calleeOf(node: ts.CallExpression): string {
  const { expression, parent } = node;
  if (ts.isCallExpression(parent) && parent.expression === node) return '';
  if (ts.isCallExpression(expression)) return expression.expression.getText();
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText();
}

/** A sender's own parameter, whose callers are looked at. */
function isHandedOn(node: ts.CallExpression, last: ts.Expression): boolean {
  return ts.isIdentifier(last) && last.text === 'statement' && SENDERS.has(functionAround(node));
}

function isOfTheBuilder({ expression }: ts.CallExpression): boolean {
  if (!ts.isPropertyAccessExpression(expression)) return false;
  return /^(db|tx|scope)$/.test(expression.expression.getText()) && OF_THE_BUILDER.has(expression.name.text);
}

function functionAround({ parent }: ts.Node): string {
  if (ts.isSourceFile(parent)) return '';
  return ts.isFunctionDeclaration(parent) ? (parent.name?.text ?? '') : functionAround(parent);
}
