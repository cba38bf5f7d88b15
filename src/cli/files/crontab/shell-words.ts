import { StaysCommand } from './imported.ts';

export interface ShellWord {
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
