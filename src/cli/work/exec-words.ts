/**
 * The words of a command as a shell would split it (POSIX.1-2017, XCU 2.2), with nothing expanded; null: a quote is not closed, or it
 * ends with a backslash.
 */
export function execWords(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  PIECE.lastIndex = 0;
  for (let at = 0; at < text.length; at = PIECE.lastIndex) {
    const piece = PIECE.exec(text);
    if (piece === null) return null;
    const [, blank, single, double, escaped, plain] = piece;
    if (blank !== undefined) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? '') + (single ?? double?.replace(IN_DOUBLE, '$1') ?? escaped ?? plain ?? '');
    }
  }
  return word === null ? words : [...words, word];
}

const PIECE = /(\s+)|'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+)/y;
const IN_DOUBLE = /\\([$`"\\])/g;
