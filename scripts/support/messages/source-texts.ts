import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** A text in the source; `…` stands for what is put in when it is said. */
export interface SaidText {
  text: string;
  /** What the call says beside it: a level, a status. */
  of: string;
}

/** A call that says something: `logger.warn(fields, text)`, `new Problem(status, text)`. */
interface Saying {
  /** The argument with the text; null: it says nothing. */
  text: ts.Expression | null;
  of: ts.Expression | string;
}

/** Recognises a call of one kind of message; null: it is another call. */
export type Recognise = (name: string, args: readonly ts.Expression[], call: ts.Node) => Saying | null;

interface Call {
  file: ts.SourceFile;
  name: string;
  args: readonly ts.Expression[];
  node: ts.Node;
}

const COMPUTED = '…';

/** Reads texts from the syntax of the sources, and follows constants and functions of the same file. */
export class SourceTexts {
  readonly #calls: readonly Call[];

  constructor(root: string, paths: readonly string[]) {
    this.#calls = paths.flatMap((path) =>
      callsOf(ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest, true)),
    );
  }

  /**
   * The texts of all calls in some of the files that are recognised, and those of the functions that hand a parameter on to such a call. Sorted, each once.
   */
  said(recognise: Recognise, isIncluded: (path: string) => boolean): SaidText[] {
    const texts = new Map<string, SaidText>();
    const helpers = new Map<string, { index: number; of: ts.Expression | string; file: ts.SourceFile }>();
    const visit = (file: ts.SourceFile, saying: Saying, from: ts.SourceFile): string | null => {
      if (saying.text === null) return null;
      const helper = helperOf(saying.text);
      if (helper !== null && !helpers.has(helper.name)) {
        helpers.set(helper.name, { index: helper.index, of: saying.of, file });
        return helper.name;
      }
      if (helper !== null) return null;
      const of = typeof saying.of === 'string' ? saying.of : textsOf(saying.of, from).join(' or ');
      for (const text of textsOf(saying.text, file).map(oneEllipsis))
        if (/[a-z]/i.test(text)) texts.set(`${of} ${text}`, { text, of });
      return null;
    };
    const found = this.#calls.filter(({ file }) => isIncluded(file.fileName));
    for (const { file, name, args, node } of found) {
      const saying = recognise(name, args, node);
      if (saying !== null) visit(file, saying, file);
    }
    // A helper may hand on what another helper hands on.
    for (const [helperName, helper] of helpers)
      for (const { file, name, args } of found)
        if (name === helperName) visit(file, { text: args[helper.index] ?? null, of: helper.of }, helper.file);
    return [...texts.values()].sort((one, other) => (one.text < other.text ? -1 : 1));
  }
}

function callsOf(file: ts.SourceFile): Call[] {
  const calls: Call[] = [];
  const walk = (node: ts.Node): void => {
    if (ts.isCallExpression(node) || ts.isNewExpression(node))
      calls.push({ file, name: node.expression.getText(file), args: node.arguments ?? [], node });
    ts.forEachChild(node, walk);
  };
  walk(file);
  return calls;
}

/** The function whose parameter this is, if it is one. */
function helperOf(expression: ts.Expression): { name: string; index: number } | null {
  if (!ts.isIdentifier(expression)) return null;
  for (let node: ts.Node = expression; !ts.isSourceFile(node); node = node.parent) {
    if (!ts.isFunctionDeclaration(node) && !ts.isArrowFunction(node)) continue;
    const index = node.parameters.findIndex(({ name }) => name.getText() === expression.text);
    if (index === -1) continue;
    if (ts.isFunctionDeclaration(node)) return node.name ? { name: node.name.text, index } : null;
    return ts.isVariableDeclaration(node.parent) ? { name: node.parent.name.getText(), index } : null;
  }
  return null;
}

/** All that an expression may say. */
function textsOf(node: ts.Node, file: ts.SourceFile): string[] {
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isNumericLiteral(node)) return [node.text];
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isSatisfiesExpression(node))
    return textsOf(node.expression, file);
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue, file), ...textsOf(node.whenFalse, file)];
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
    return joined(textsOf(node.left, file), textsOf(node.right, file));
  if (ts.isTemplateExpression(node))
    return node.templateSpans.reduce(
      (begun, { expression, literal }) => joined(joined(begun, textsOf(expression, file)), [literal.text]),
      [node.head.text],
    );
  if (ts.isIdentifier(node)) return constantOf(node, file);
  if (ts.isElementAccessExpression(node)) return valuesOf(node.expression, file);
  if (ts.isCallExpression(node)) return returnedBy(node.expression, file);
  return [COMPUTED];
}

function oneEllipsis(text: string): string {
  return text.trim().replaceAll(/…(?: ?…)+/g, '…');
}

function joined(beginnings: readonly string[], ends: readonly string[]): string[] {
  return beginnings.flatMap((beginning) => ends.map((end) => beginning + end));
}

function constantOf(name: ts.Identifier, file: ts.SourceFile): string[] {
  const value = declarationOf(name, file)?.initializer;
  return value === undefined ? [COMPUTED] : textsOf(value, file);
}

/** The values of a table: `TEXTS[reason]`. */
function valuesOf(table: ts.Expression, file: ts.SourceFile): string[] {
  let value = ts.isIdentifier(table) ? declarationOf(table, file)?.initializer : undefined;
  while (value && (ts.isSatisfiesExpression(value) || ts.isAsExpression(value))) value = value.expression;
  if (value === undefined || !ts.isObjectLiteralExpression(value)) return [COMPUTED];
  return value.properties.flatMap((one) =>
    ts.isPropertyAssignment(one) ? textsOf(one.initializer, file) : [COMPUTED],
  );
}

/** The nearest constant of this name above the place where it is used. */
function declarationOf(name: ts.Identifier, file: ts.SourceFile): ts.VariableDeclaration | undefined {
  const found: ts.VariableDeclaration[] = [];
  const walk = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.name.getText() === name.text) found.push(node);
    ts.forEachChild(node, walk);
  };
  walk(file);
  const isAround = (one: ts.VariableDeclaration) => {
    const block = one.parent.parent.parent;
    return block.pos <= name.pos && name.end <= block.end;
  };
  return found.filter(isAround).at(-1);
}

/** What a function of the same file returns. */
function returnedBy(called: ts.Expression, file: ts.SourceFile): string[] {
  const declared = file.statements.find(
    (one): one is ts.FunctionDeclaration =>
      ts.isFunctionDeclaration(one) && ts.isIdentifier(called) && one.name?.text === called.text,
  );
  if (declared?.body === undefined) return [COMPUTED];
  const returned: string[] = [];
  const walk = (node: ts.Node): void => {
    if (ts.isReturnStatement(node) && node.expression) returned.push(...textsOf(node.expression, file));
    if (!ts.isFunctionLike(node)) ts.forEachChild(node, walk);
  };
  ts.forEachChild(declared.body, walk);
  return returned.length === 0 ? [COMPUTED] : returned;
}
