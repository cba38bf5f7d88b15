import type { Surroundings } from '../../surroundings.ts';
import { paintFor } from '../../terminal/paint.ts';
import { clockText, frameLines, progressLine, type DemoEvent, type Snapshot } from './frame.ts';

/** Where the demo is watched: a screen that is drawn again and again, or lines one after the other. */
export interface Screen {
  /** Takes a moment; shows it where it is time to. */
  show(snapshot: Snapshot): void;
  /** For what is to stay on a log; a screen has it in its next frame. */
  say(event: DemoEvent): void;
  /** Below all that was shown. */
  end(lines: readonly string[]): void;
}

const LINE_EVERY_MS = 5_000;
const NARROWEST = 40;

export function createScreen({ out, env }: Pick<Surroundings, 'out' | 'env'>): Screen {
  const write = (lines: readonly string[]) => out.write(lines.map((line) => `${line}\n`).join(''));
  return out.isTerminal && env['TERM'] !== 'dumb' ? liveScreen(out, env, write) : plainLines(write);
}

type Write = (lines: readonly string[]) => void;

function liveScreen(out: Surroundings['out'], env: Surroundings['env'], write: Write): Screen {
  const paint = paintFor(true, env);
  let height = 0;
  return {
    show: (snapshot) => {
      const columns = Math.max(NARROWEST, (out.columns ?? 80) - 1);
      const lines = frameLines(snapshot, { columns, paint });
      // Up to the first line, and each line anew: nothing flickers, and what stands above stays.
      const up = height === 0 ? '' : `\x1b[${height}A`;
      out.write(`${up}${lines.map((line) => `\x1b[2K${line}\n`).join('')}`);
      height = lines.length;
    },
    say: () => undefined,
    end: (lines) => write(height === 0 ? lines : ['', ...lines]),
  };
}

function plainLines(write: Write): Screen {
  let shownAt = -Infinity;
  return {
    show: (snapshot) => {
      if (snapshot.elapsedMs === 0 || snapshot.elapsedMs - shownAt < LINE_EVERY_MS) return;
      shownAt = snapshot.elapsedMs;
      write([progressLine(snapshot)]);
    },
    say: ({ atMs, text }) => write([`${clockText(atMs)}  ${text}`]),
    end: write,
  };
}
