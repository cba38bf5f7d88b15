import type { Instant } from '../../../core/instant.ts';
import { cutToWidth } from '../../terminal/shown-text.ts';
import type { Paint } from '../../terminal/paint.ts';
import { durationText } from '../../terminal/time-text.ts';
import type { DemoInstance } from '../cluster/three-instances.ts';

const SHOWN_EVENTS = 5;
const CURVE_WIDTH = 44;

type Colour = Parameters<Paint>[0];
interface Part {
  text: string;
  colour?: Colour;
}

/** The screen at one moment: as many lines each time, none wider than the terminal. */
export function frameLines(
  snapshot: Snapshot,
  { columns, paint }: { columns: number; paint: Paint },
): string[] {
  const { instances, events } = snapshot;
  const shown = events.slice(-SHOWN_EVENTS);
  const lines: Part[][] = [
    titleOf(snapshot),
    [],
    ...instances.map(instanceLine),
    [],
    fires(snapshot),
    [
      ...named('open'),
      { text: count(snapshot.open) },
      { text: `   ${curve(snapshot, 'open')}`, colour: 'cyan' },
    ],
    lostLine(snapshot),
    latenessLine(snapshot),
    [],
    ...Array.from({ length: SHOWN_EVENTS }, (_, index) => eventLine(shown[index])),
  ];
  return lines.map((parts) => painted(parts, columns, paint));
}

/** A line for those who do not watch a screen. */
export function progressLine(snapshot: Snapshot): string {
  const { elapsedMs, due, delivered, skipped, open, lostNow, lost, recovered, instances } = snapshot;
  const ready = instances.filter(({ state }) => state === 'ready').length;
  return (
    `${clockText(elapsedMs)}  ${ready} of ${instances.length} instances ready; due ${count(due).trim()}, ` +
    `delivered ${count(delivered).trim()}, skipped ${count(skipped).trim()}; open ${open}; ` +
    `lost ${lost}, recovered ${recovered}, lost now ${lostNow}`
  );
}

/** `1:05`. */
export function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function titleOf({ phase, elapsedMs, totalMs, schedules, instances }: Snapshot): Part[] {
  const what = `${instances.length} instances, one PostgreSQL, ${schedules} schedules`;
  const clock = `${clockText(Math.min(elapsedMs, totalMs))} of ${clockText(totalMs)}`;
  return [
    { text: 'firelock demo', colour: 'bold' },
    { text: `  ${what}  ${clock}  ` },
    { text: phase, colour: 'cyan' },
  ];
}

function instanceLine({ number, pid, url, state, kills }: Snapshot['instances'][number]): Part[] {
  const [text, colour] = STATES[state];
  return [
    { text: `  instance ${number}  ` },
    { text: text.padEnd(12), colour },
    { text: (pid === 0 ? '' : `pid ${pid}`).padEnd(12) },
    { text: url.padEnd(24) },
    { text: kills === 0 ? '' : `killed ${kills === 1 ? 'once' : `${kills} times`}`, colour: 'dim' },
  ];
}

const STATES: Record<Snapshot['instances'][number]['state'], readonly [string, Colour]> = {
  starting: ['starting', 'yellow'],
  ready: ['ready', 'green'],
  killed: ['KILLED -9', 'red'],
};

function fires({ due, delivered, skipped }: Snapshot): Part[] {
  const notFired = `, ${count(skipped).trim()} skipped (overlap)`;
  return [
    ...named('due'),
    { text: count(due) },
    { text: `   ${count(delivered).trim()} delivered${notFired}` },
  ];
}

function lostLine({ lost, recovered, lostNow, ...rest }: Snapshot): Part[] {
  const colour: Colour = lostNow > 0 ? 'red' : 'green';
  return [
    ...named('lost'),
    { text: count(lostNow), colour },
    { text: `   ${curve(rest, 'lost').padEnd(CURVE_WIDTH)}`, colour: 'red' },
    { text: `  of ${lost} lost, ${recovered} recovered` },
  ];
}

function latenessLine({ lateness }: Snapshot): Part[] {
  if (lateness === null) return named('late');
  const { medianMs, p99Ms, mostMs } = lateness;
  const text = `half of them ${durationText(medianMs)} at most, 99 % ${durationText(p99Ms)}, the latest ${durationText(mostMs)}`;
  return [...named('late'), { text: `${' '.repeat(11)}${text}` }];
}

function eventLine(event: Snapshot['events'][number] | undefined): Part[] {
  if (event === undefined) return [];
  return [{ text: `  ${clockText(event.atMs)}  `, colour: 'dim' }, { text: event.text }];
}

function named(name: string): Part[] {
  return [{ text: `  ${name.padEnd(6)}`, colour: 'bold' }];
}

function count(value: number): string {
  return value.toLocaleString('en').padStart(8);
}

const BARS = '▁▂▃▄▅▆▇█';

/** The last seconds, scaled to the most of them. */
function curve({ curve: all }: Pick<Snapshot, 'curve'>, name: 'open' | 'lost'): string {
  const values = all.slice(-CURVE_WIDTH).map((point) => point[name]);
  const most = Math.max(1, ...values);
  return values.map((value) => BARS[Math.ceil((value / most) * (BARS.length - 1))] ?? '').join('');
}

function painted(parts: readonly Part[], columns: number, paint: Paint): string {
  let room = columns;
  let line = '';
  for (const { text, colour } of parts) {
    const kept = cutToWidth(text, room);
    room -= kept.length;
    line += colour === undefined || kept === '' ? kept : paint(colour, kept);
  }
  return line;
}

/** Everything that the screen shows of one moment. */
export interface Snapshot {
  /** What the demo is doing, in words. */
  phase: string;
  /** Since the first fire was due, in milliseconds; before that 0. */
  elapsedMs: number;
  totalMs: number;
  schedules: number;
  instances: readonly Pick<DemoInstance, 'number' | 'pid' | 'url' | 'state' | 'kills'>[];
  due: number;
  delivered: number;
  skipped: number;
  open: number;
  /** Claimed by an instance that is dead, or taken over from it and not handed off since. */
  lostNow: number;
  lost: number;
  recovered: number;
  /** Runs that were open, and lost at that moment: a pair for each second, the latest last. */
  curve: readonly { open: number; lost: number }[];
  /** Of first deliveries; null: there is none yet. */
  lateness: { medianMs: number; p99Ms: number; mostMs: number } | null;
  /** What happened, the latest last. */
  events: readonly DemoEvent[];
}

export interface DemoEvent {
  /** As elapsedMs. */
  atMs: number;
  at: Instant;
  text: string;
}

/** By nearest rank. */
export function latenessOf(values: readonly number[]): Snapshot['lateness'] {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const rank = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0;
  return { medianMs: rank(0.5), p99Ms: rank(0.99), mostMs: rank(1) };
}
