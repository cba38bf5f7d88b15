/**
 * Records `firelock demo` as docs/pictures/demo.svg: runs it here, on a terminal that only remembers, and makes an animated picture of
 * what it has written. Nothing in it is drawn by hand; only the time runs faster.
 *
 *     node scripts/demo-picture.ts [--seconds=45]
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand } from '../src/cli/program.ts';
import { processSurroundings } from '../src/cli/process-surroundings.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { animatedSvg } from './support/animated-svg.ts';
import { type Frame, createRecorder } from './support/terminal-recorder.ts';

const COLUMNS = 101;
/** One frame for so many milliseconds, shown for so many. */
const PACE = { realMs: 1_000, shownMs: 400, lastMs: 6_000 };
const FILE = join(import.meta.dirname, '..', 'docs', 'pictures', 'demo.svg');

const { seconds } = parseArgs({ options: { seconds: { type: 'string', default: '45' } } }).values;
const recorder = createRecorder({ now: () => performance.now() });
const noDaemon = () => Promise.reject(new Error('the demo starts its daemons itself'));
const around = processSurroundings({
  ...{ clock: systemClock, version: '0', daemon: { serve: noDaemon, onDatabase: noDaemon } },
});
const out = { write: (text: string) => recorder.write(text), isTerminal: true, columns: COLUMNS };
const code = await runCommand(['demo', '--seconds', seconds], {
  ...{ ...around, out, env: { PATH: process.env['PATH'], HOME: process.env['HOME'] } },
  signal: around.signal,
});
if (code !== 0) throw new Error(`the demo ended with ${code}:\n${recorder.text()}`);
const frames = sampled(recorder.frames());
const picture = animatedSvg(frames, {
  columns: COLUMNS,
  title: 'firelock demo: three instances are killed one after the other, and no fire is lost',
});
writeFileSync(FILE, picture);
console.log(`${FILE}: ${frames.length} frames, ${Math.round(picture.length / 1024)} kB`);

/** The last frame of each second. */
function sampled(all: readonly Frame[]): { lines: Frame['lines']; forMs: number }[] {
  const bySecond = Map.groupBy(all, ({ at }) => Math.floor(at / PACE.realMs));
  const kept = [...bySecond.values()].flatMap((frames) => frames.slice(-1));
  return kept.map(({ lines }, index) => ({
    lines,
    forMs: index === kept.length - 1 ? PACE.lastMs : PACE.shownMs,
  }));
}
