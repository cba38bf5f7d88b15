import { StaysCommand } from './imported.ts';
import type { ShellWord } from './shell-words.ts';

export interface CurlOption {
  /** The long name. */
  name: string;
  /** Empty, where it takes none. */
  value: string;
  /** The word that has the value. */
  word: number;
}

export interface CurlLine {
  /** In their order. */
  options: CurlOption[];
  urls: string[];
}

/** The words after `curl`. @throws StaysCommand for an option that is not known here */
export function curlLine(words: readonly ShellWord[]): CurlLine {
  const line: CurlLine = { options: [], urls: [] };
  let at = 1;
  let onlyUrls = false;
  /** Answers whether the option takes a value: the text that is attached to it, or the next word. */
  const add = (name: string, option: string, attached: string): boolean => {
    if (FLAGS.has(name)) {
      line.options.push({ name, value: '', word: at });
      return false;
    }
    if (!VALUED.has(name)) throw new StaysCommand(`the option ${option}`);
    if (attached === '') at += 1;
    const value = attached === '' ? words[at]?.text : attached;
    if (value === undefined) throw new StaysCommand(`${option} without a value`);
    line.options.push({ name, value, word: at });
    return true;
  };
  for (; at < words.length; at += 1) {
    const text = words[at]?.text ?? '';
    if (onlyUrls || !text.startsWith('-')) line.urls.push(text);
    else if (text === '--') onlyUrls = true;
    else if (text === '-' || text.startsWith('--')) add(text.slice(2), text, '');
    else addLetters(text, add);
  }
  return line;
}

/** Several letters, of which the last may take a value. */
function addLetters(text: string, add: (name: string, option: string, attached: string) => boolean): void {
  for (let index = 1; index < text.length; index += 1) {
    const letter = text[index] ?? '';
    if (add(SHORT.get(letter) ?? '', `-${letter}`, text.slice(index + 1))) return;
  }
}

const FLAGS = new Set(['fail', 'get', 'head', 'location', 'show-error', 'silent']);
const VALUED = new Set([
  'connect-timeout',
  'data',
  'data-ascii',
  'data-binary',
  'data-raw',
  'header',
  'json',
  'max-time',
  'output',
  'request',
  'retry',
  'retry-delay',
  'user',
]);
const SHORT = new Map([
  ['G', 'get'],
  ['H', 'header'],
  ['I', 'head'],
  ['L', 'location'],
  ['S', 'show-error'],
  ['X', 'request'],
  ['d', 'data'],
  ['f', 'fail'],
  ['m', 'max-time'],
  ['o', 'output'],
  ['s', 'silent'],
  ['u', 'user'],
]);
