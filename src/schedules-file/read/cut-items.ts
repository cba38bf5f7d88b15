import { KINDS, type Kind } from '../schedules-file.ts';

/** The lines of one item of a list. */
interface Piece {
  kind: Kind;
  text: string;
  /** Of the file, from 1. */
  firstLine: number;
}

interface CutFile {
  /** The rest: lines keep their numbers, lists are empty. */
  rest: string;
  pieces: Piece[];
}

/**
 * Cuts lists in YAML's block style into items that can be read one by one: the tree of a file of a hundred thousand
 * schedules takes gigabytes. Null: the file has another style, or its items may refer to each other.
 */
export function cutIntoItems(source: string): CutFile | null {
  if (MAY_REFER.test(source)) return null;
  const rest: string[] = [];
  const pieces: { kind: Kind; lines: string[]; firstLine: number }[] = [];
  let kind: Kind | null = null;
  let indent: number | null = null;
  for (const [index, line] of source.split('\n').entries()) {
    const item = /^( *)-(?:\s|$)/.exec(line);
    const begun = KINDS.find((one) => line.trimEnd() === `${one}:`);
    const isBelow: boolean = kind !== null && /^(?:\s|#|$)/.test(line);
    const piece = indent === null ? undefined : pieces.at(-1);
    let left = '';
    if (kind !== null && item && (indent ?? item[1]?.length) === item[1]?.length) {
      indent = item[1]?.length ?? 0;
      pieces.push({ kind, lines: [line], firstLine: index + 1 });
    } else if (isBelow && piece) {
      piece.lines.push(line);
    } else if (isBelow && !/^\s*(?:#|$)/.test(line)) {
      return null;
    } else {
      [kind, indent] = isBelow ? [kind, indent] : [begun ?? null, null];
      left = begun === undefined ? line : `${begun}: []`;
    }
    rest.push(left);
  }
  return {
    rest: rest.join('\n'),
    pieces: pieces.map((piece) => ({ ...piece, text: piece.lines.join('\n') })),
  };
}

/** An anchor, an alias, or a text that looks like one. */
const MAY_REFER = /(?:^|[\s:[,{-])[&*]\w/;
