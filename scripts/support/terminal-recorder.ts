/** A piece of a line that is written in one way. */
export interface Run {
  text: string;
  /** Names of the attributes in force: `bold`, `red` and so on. */
  styles: readonly string[];
}

export interface Frame {
  /** Milliseconds since the first one. */
  at: number;
  lines: readonly (readonly Run[])[];
}

interface Recorder {
  write(text: string): void;
  /** The screen after each write. */
  frames(): readonly Frame[];
  /** What stands there now. */
  text(): string;
}

const STYLES: Readonly<Record<string, string>> = {
  1: 'bold',
  2: 'dim',
  31: 'red',
  32: 'green',
  33: 'yellow',
  36: 'cyan',
};
/** Each ends the attributes that it names. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  0: Object.values(STYLES),
  22: ['bold', 'dim'],
  39: ['red', 'green', 'yellow', 'cyan'],
};

// eslint-disable-next-line no-control-regex -- these are what a terminal obeys
const PIECES = /\x1b\[(\d*)([A-Za-z])|(\n)|([^\x1b\n]+)/g;

/** A terminal that knows what the demo uses: new lines, going up, clearing a line, and colours. */
export function createRecorder({ now }: { now: () => number }): Recorder {
  const lines: Run[][] = [[]];
  const frames: Frame[] = [];
  let row = 0;
  let styles: readonly string[] = [];
  let startedAt: number | undefined;

  function obey(parameters: string, command: string): void {
    if (command === 'A') row = Math.max(0, row - Number(parameters));
    else if (command === 'K') lines[row] = [];
    else if (command === 'm') {
      const ended = ENDS[parameters];
      const style = STYLES[parameters];
      if (ended !== undefined) styles = styles.filter((one) => !ended.includes(one));
      else if (style !== undefined) styles = [...styles, style];
      else throw new Error(`unknown style ${parameters}`);
    } else throw new Error(`unknown command ${command}`);
  }

  return {
    write: (text) => {
      for (const [, parameters = '', command, newLine, plain] of text.matchAll(PIECES)) {
        if (command !== undefined) obey(parameters, command);
        else if (newLine !== undefined) lines[(row += 1)] ??= [];
        else (lines[row] ??= []).push({ text: plain ?? '', styles });
      }
      startedAt ??= now();
      frames.push({ at: now() - startedAt, lines: lines.map((line) => [...line]) });
    },
    frames: () => frames,
    text: () => lines.map((line) => line.map(({ text }) => text).join('')).join('\n'),
  };
}
