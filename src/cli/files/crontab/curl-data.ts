import type { CurlOption } from './curl-options.ts';
import { StaysCommand } from './imported.ts';

/** What -d and the like give, joined as curl joins them; null: there are none. @throws StaysCommand */
export function curlData(options: readonly CurlOption[], stdin: string | undefined): string | null {
  const given = options.filter(({ name }) => name.startsWith('data') || name === 'json');
  const isRead = given.filter(({ name, value }) => name !== 'data-raw' && value === '@-').length;
  if (isRead > 1) throw new StaysCommand('two options read its input');
  if (isRead === 0 && stdin !== undefined) throw new StaysCommand('curl does not read its input (“%”)');
  const pieces = given.map((option) => ({ ...option, text: textOf(option, stdin) }));
  if (pieces.length > 1 && pieces.some(({ text }) => text === ''))
    throw new StaysCommand('versions of curl differ about an empty -d beside others');
  return pieces.reduce<string | null>((before, { name, text }) => {
    if (before === null) return text;
    return name === 'json' ? before + text : `${before}&${text}`;
  }, null);
}

function textOf({ name, value }: CurlOption, stdin: string | undefined): string {
  if (name === 'data-raw' || !value.startsWith('@')) return value;
  if (value !== '@-') throw new StaysCommand(`--${name} reads the file ${value.slice(1)}`);
  if (stdin === undefined) throw new StaysCommand(`--${name} @- without an input (“%”)`);
  return name === 'data' || name === 'data-ascii' ? stdin.replace(/[\r\n\0]/g, '') : stdin;
}
