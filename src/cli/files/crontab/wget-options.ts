import type { CurlLine } from './curl-options.ts';
import { StaysCommand } from './imported.ts';
import type { ShellWord } from './shell-words.ts';

/** The words after `wget`, as curl would be told them. @throws StaysCommand for an option that is not known here */
export function wgetLine(words: readonly ShellWord[]): CurlLine {
  const line: CurlLine = { options: [], urls: [] };
  const add = (option: string, value: string, word: number) =>
    line.options.push({ ...asCurl(option, value), word });
  for (let at = 1; at < words.length; at += 1) {
    const text = words[at]?.text ?? '';
    const [, long, attached] = /^(--[a-z-]+)(?:=(.*))?$/s.exec(text) ?? [];
    const [, letter, rest = ''] = /^-q?([OtT])(.*)$/s.exec(text) ?? [];
    if (QUIET.has(text)) continue;
    if (!text.startsWith('-')) line.urls.push(text);
    else if (letter === undefined && (long === undefined || !NAMES.has(long)))
      throw new StaysCommand(`the option ${text}`);
    else {
      const given = long === undefined ? rest || undefined : attached;
      if (given === undefined) at += 1;
      add(long ?? `-${letter}`, given ?? words[at]?.text ?? '', at);
    }
  }
  const has = (name: string) => line.options.some((option) => option.name === name);
  if (!has('output')) throw new StaysCommand('wget writes a file, unless -O is - or /dev/null');
  // What wget waits for, if it is not told.
  if (!has('max-time')) line.options.push({ name: 'max-time', value: '900', word: -1 });
  return line;
}

const QUIET = new Set(['-q', '-nv', '--quiet', '--no-verbose']);

const NAMES = new Map([
  ['-O', 'output'],
  ['--output-document', 'output'],
  ['-t', 'retry'],
  ['--tries', 'retry'],
  ['-T', 'max-time'],
  ['--timeout', 'max-time'],
  ['--header', 'header'],
  ['--post-data', 'data-raw'],
]);

function asCurl(option: string, value: string): { name: string; value: string } {
  const name = NAMES.get(option) ?? option;
  if (name === 'output' && value === '-') return { name, value: '/dev/null' };
  // All attempts, where curl is told those after the first.
  if (name === 'retry') return { name, value: String(Number(value) - 1) };
  return { name, value };
}
