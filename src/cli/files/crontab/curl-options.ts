import { StaysCommand } from './imported.ts';

interface ShellWord {
  /** What the program gets. */
  text: string;
  /** How it is written in the command. */
  source: string;
}

/**
 * The words of a command of which a shell makes one call of a program, with the same words each time (POSIX.1-2017, XCU
 * 2.2 to 2.7). Its output may go to /dev/null. sh, bash, dash, ash and ksh read such words alike.
 * @throws StaysCommand for everything else
 */
export function constantWords(command: string): ShellWord[] {
  const words: ShellWord[] = [];
  let at = 0;
  const take = (pattern: RegExp) => {
    pattern.lastIndex = at;
    const found = pattern.exec(command);
    at += found?.[0].length ?? 0;
    return found;
  };
  for (;;) {
    take(BLANKS);
    if (at === command.length || command[at] === '#') return words;
    if (take(TO_NOWHERE)) continue;
    const start = at;
    let text = '';
    let isOpen = false;
    for (let piece = take(PIECE); piece !== null; piece = take(PIECE)) {
      text += textOf(piece);
      isOpen ||= piece[4]?.includes('?') === true;
    }
    const source = command.slice(start, at);
    if (source === '') throw new StaysCommand(whyNot(command.slice(at)));
    // There is no folder “http:” whose files it could be.
    if (isOpen && !/^https?:\/\//i.test(text)) throw new StaysCommand(whyNot('?'));
    if (/^\d+$/.test(source) && /[<>]/.test(command[at] ?? '')) throw new StaysCommand(ELSEWHERE);
    words.push({ text, source });
  }
}

const BLANKS = /[ \t]*/y;
const TO_NOWHERE = /(?:[12]?>>?[ \t]*\/dev\/null|2>&1|1?>&2)(?=[ \t;&|()]|$)/y;
/** Quoted parts, and characters that mean themselves. A tilde does inside of a path. */
const PIECE = /'([^']*)'|"((?:[^"\\$`]|\\[^])*)"|\\([^])|((?:[\w@%+=:,./!^#?-]|(?<=[\w/.])~)+)/y;

function textOf([, single, double, escaped, plain]: RegExpExecArray): string {
  return single ?? double?.replace(/\\([$`"\\])/g, '$1') ?? escaped ?? plain ?? '';
}

const ELSEWHERE = 'its input or output is not that of cron or /dev/null';

/** Why a command cannot go on like this. */
function whyNot(rest: string): string {
  const sign = /^"(?:[^"\\$`]|\\[^])*([$`])/.exec(rest)?.[1] ?? rest[0] ?? '';
  if (sign === '"' || sign === "'") return `${sign} is not closed`;
  if (sign === '\\') return 'it ends with a backslash';
  if (sign === '$' || sign === '`') return `the shell puts something else for “${sign}”`;
  if (sign === '<' || sign === '>') return ELSEWHERE;
  const [operator] = /^[|&;()]+/.exec(rest) ?? [];
  if (operator !== undefined) return `“${operator}”: it is more than one call`;
  return `“${sign}” without quotes: the shell may put something else for it`;
}

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
const VALUED = new Set(
  'connect-timeout data data-ascii data-binary data-raw header json max-time output request retry retry-delay user'.split(
    ' ',
  ),
);
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

/** The words after `wget`, as curl would be told them. @throws StaysCommand for an option that is not known here */
export function wgetLine(words: readonly ShellWord[]): CurlLine {
  const line: CurlLine = { options: [], urls: [] };
  const add = (option: string, value: string, word: number) => line.options.push({ ...asCurl(option, value), word });
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
