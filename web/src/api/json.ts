import { JSON_TOKENS, JsonText, parseJson, stringifyJson } from '../../../clients/typescript/src/json-text.ts';

// Payloads keep their text here as they do in the client for other programs.
export { JsonText, parseJson, stringifyJson };

/** The text of a payload that parseJson has read. */
export function textOf(payload: unknown): string {
  return stringifyJson(payload ?? null);
}

/** With line breaks and indents; each number and string stays as it was written. */
export function formatJson(text: string): string {
  let formatted = '';
  let depth = 0;
  let before = '';
  const newLine = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of text.matchAll(JSON_TOKENS)) {
    const closes = token === '}' || token === ']';
    if (closes) depth -= 1;
    const isEmpty = closes && (before === '{' || before === '[');
    if (!isEmpty && (closes || before === '{' || before === '[' || before === ',')) formatted += newLine();
    formatted += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth += 1;
    before = token;
  }
  return formatted;
}

/** What is wrong with it; null: it is JSON. */
export function faultOfJson(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : 'is not JSON';
  }
}
