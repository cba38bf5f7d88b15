import { formatJson, stringifyJson } from '../../api/json.ts';

interface Call {
  url: string;
  body: unknown;
  headers: Readonly<Record<string, string>>;
  /** The daemon wants one; it is named, not told. */
  needsToken: boolean;
}

/** A PUT, to be pasted into a shell. */
export function curlText({ url, body, headers, needsToken }: Call): string {
  const lines = [
    `curl -X PUT ${shellQuoted(url)}`,
    ...(needsToken ? ['-H "authorization: Bearer $FIRELOCK_TOKEN"'] : []),
    ...Object.entries({ 'content-type': 'application/json', ...headers }).map(
      ([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`,
    ),
    `--data-binary ${shellQuoted(formatJson(stringifyJson(body)))}`,
  ];
  return lines.join(' \\\n  ');
}

/** Within single quotes a shell reads nothing but the quote itself. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
