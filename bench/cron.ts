/**
 * The cron engine alone, on one core: how many fires it finds a second, beside croner's own search in the same run; what an
 * expression that is in use holds; and the longest that anything a client can send keeps all others waiting.
 *
 *     npm run bench:cron -- [--json FILE]
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Cron } from 'croner';
import { CronError, MAX_EXPRESSION_LENGTH, cronTimes } from '../src/core/cron/cron.ts';
import { type Machine, describeMachine } from './support/measures/machine.ts';
import { median } from './support/measures/statistics.ts';

const { values: options } = parseArgs({
  options: {
    json: { type: 'string' },
    /** Only the cold calls, as JSON: the bench starts itself so. */
    cold: { type: 'boolean', default: false },
  },
});

const FROM = Date.UTC(2026, 0, 1);
const UNTIL = Date.UTC(2036, 0, 1);
const ROUNDS = 5;
const ROUND_MS = 200;

const ORDINARY = [
  ['*/5 * * * *', 'Europe/Berlin'],
  ['0 9 * * MON-FRI', 'Europe/Berlin'],
  ['0 2 * * *', 'America/New_York'],
  ['30 4 1,15 * *', 'America/New_York'],
  ['0 */6 * * *', 'America/New_York'],
  ['*/10 * * * * *', 'Europe/Berlin'],
  ['0 0 LW * *', 'Europe/Berlin'],
  ['15 3 * * 1#1', 'Africa/Casablanca'],
] as const;

/** Accepted, and as much work as can be asked for: much to read, hardly ever or never a match, many years between two. */
const HEAVY = [
  '0 0 31 2 *',
  '0 0 30 2 *',
  '0 0 29 2 +MON',
  '0 0 29 2 +SUN#5',
  '0 0 31 2,4,6,9,11 *',
  '0 0 LW * +SUN',
  '0 0 31W * +SAT',
  '59 59 23 29 2 +6L',
  '0 0 1W,2W,3W,4W,5W,6W,7W,8W,9W,10W,11W,12W,13W,14W,15W,16W,17W,18W,19W,20W,21W,22W,23W,24W,25W,26W,27W,28W,29W,30W,31W * +0,6',
  '0 0 1,2,3,4,5,6,7,L,1W,15W,31W * +0#5,1#5,2#5,3#5,4#5,5#5,6#5,0L,1L,2L,3L,4L,5L,6L',
  listed('0', 59, '* * * *'),
  `* * * * ${'SUN,'.repeat(61)}MON`,
  `0 0 ${'1-31/30,'.repeat(29)}L 2 +6`,
  `${'H(0-29)/7,'.repeat(23)}H H H H H`,
] as const;
/** Refused, and as long as can be. */
const REFUSED = [
  ','.repeat(MAX_EXPRESSION_LENGTH),
  '1'.repeat(MAX_EXPRESSION_LENGTH),
  `0 0 ${'1W-'.repeat(80)} * *`,
  `${'H('.repeat(100)} * * * *`,
  `0 0 * * ${'5L'.repeat(100)}`,
  `* * * * ${'1-'.repeat(100)}`,
  `* * * * ${'SUN#'.repeat(60)}`,
  `@every ${'1.1'.repeat(80)}h`,
  `${' '.repeat(127)}*${' '.repeat(127)}`,
] as const;

if (options.cold) console.log(JSON.stringify(coldCalls()));
else run();

function run(): void {
  const longest = longestCalls();
  const speed = ORDINARY.map(([expression, zone]) => ({
    expression,
    zone,
    firelock: perSecond(engineOf(expression, zone)),
    withLookUp: perSecond((after) => cronTimes(expression, zone, 'bench').next(after)),
    croner: perSecond(cronerOf(expression, zone)),
  }));
  const report: Report = { machine: describeMachine(), speed, bytes: bytesPerExpression(), longest };
  print(report);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
}

interface Report {
  machine: Machine;
  speed: { expression: string; zone: string; firelock: number; withLookUp: number; croner: number }[];
  bytes: ReturnType<typeof bytesPerExpression>;
  longest: ReturnType<typeof longestCalls>;
}

type Next = (after: number) => number | null;

function engineOf(expression: string, zone: string): Next {
  const times = cronTimes(expression, zone, 'bench');
  return (after) => times.next(after);
}

function cronerOf(expression: string, zone: string): Next {
  const cron = new Cron(expression, { timezone: zone, paused: true, mode: '5-or-6-parts' });
  return (after) => cron.nextRun(new Date(after))?.getTime() ?? null;
}

/** Each fire from the one before it, through ten years and again. */
function perSecond(next: Next): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    let at = FROM;
    let calls = 0;
    while (performance.now() - start < ROUND_MS) {
      for (let call = 0; call < 50; call += 1) {
        const found = next(at);
        at = found === null || found > UNTIL ? FROM : found;
      }
      calls += 50;
    }
    return (calls / (performance.now() - start)) * 1000;
  });
  return Math.round(median(rounds));
}

interface Call {
  ms: number;
  what: string;
}

interface Cold {
  first: Call[];
  accepted: Call[];
  refused: Call[];
}

/** Every call cold: its expression is new, and so are the years of its zone. */
function coldCalls(): Cold {
  const zones = Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC');
  const first = [timed('0 9 * * *', 'Europe/Berlin', FROM)];
  const accepted = zones.flatMap((zone, index) =>
    [2000, 2026, 2099].flatMap((year) => [
      timed(spaced(HEAVY[(index * 3 + year) % HEAVY.length] ?? '', index), zone, Date.UTC(year, 2, 1)),
      timed(neverOn(index * 3 + (year % 3)), zone, Date.UTC(year, 5, 1)),
    ]),
  );
  const refused = REFUSED.flatMap((expression) => [0, 1, 2].map(() => timed(expression, null, FROM)));
  return { first, accepted, refused };
}

/**
 * A machine with other work to do takes some milliseconds of any call, now and then. So the same calls are made in several
 * processes, each cold; a call counts as the shortest it took, and the longest of these is the figure.
 */
function longestCalls(): Record<keyof Cold, Call> & { calls: number } {
  const rounds = Array.from(
    { length: ROUNDS },
    () =>
      JSON.parse(
        execFileSync(process.execPath, [import.meta.filename, '--cold'], { encoding: 'utf8' }),
      ) as Cold,
  );
  const longest = (kind: keyof Cold): Call => {
    const calls = (rounds[0]?.[kind] ?? []).map(({ what }, index) => ({
      what,
      ms: Math.min(...rounds.map((round) => round[kind][index]?.ms ?? Infinity)),
    }));
    return calls.reduce((longer, call) => (call.ms > longer.ms ? call : longer));
  };
  return {
    first: longest('first'),
    accepted: longest('accepted'),
    refused: longest('refused'),
    calls: rounds[0]?.accepted.length ?? 0,
  };
}

/** Reads it, finds the first fire and what is to be said of it. */
function timed(expression: string, zone: string | null, from: number): Call {
  const start = performance.now();
  try {
    const times = cronTimes(expression, zone, 'bench');
    const fire = times.next(from);
    if (fire !== null) times.noteOf(fire);
  } catch (error) {
    if (!(error instanceof CronError)) throw error;
  }
  return { ms: performance.now() - start, what: `${expression.trim().slice(0, 50)} in ${zone ?? 'UTC'}` };
}

/** Another spelling of the same, as long as it may be. */
function spaced(expression: string, count: number): string {
  const room = MAX_EXPRESSION_LENGTH - expression.length;
  return `${' '.repeat(Math.min(room, count % 97))}${expression}`;
}

/** Weekdays nearest to almost every day that fall on a fifth Sunday: all kinds of months are asked for in vain, of a new calendar. */
function neverOn(seed: number): string {
  const days = Array.from({ length: 31 }, (_, index) => index + 1).filter(
    (day) => (day * 7 + seed) % 11 !== 0,
  );
  return `0 0 ${days.map((day) => `${day}W`).join(',')} 1-${1 + (seed % 12)} +0#5,6#${1 + (seed % 5)}`;
}

function listed(from: string, to: number, rest: string): string {
  return `${Array.from({ length: to }, (_, index) => String(Number(from) + index)).join(',')} ${rest}`;
}

/** All caches on the way are in it: calendars, zones, the key it is found by. */
function bytesPerExpression(): { firelock: number; croner: number; expressions: number } {
  const expressions = 10_000;
  const zones = ['Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'Africa/Casablanca'] as const;
  const before = heap();
  for (let index = 0; index < expressions; index += 1) {
    const [minute, hour] = [index % 60, Math.floor(index / 60) % 24];
    const days = `${1 + (index % 28)},${1 + ((index * 7) % 28)}`;
    const expression = `${minute} ${hour} ${days} * ${Math.floor(index / 1440)}`;
    cronTimes(expression, zones[index % zones.length] ?? null, '').next(FROM);
  }
  const firelock = (heap() - before) / expressions;
  const beforeCroner = heap();
  const crons = Array.from({ length: 100 }, (_, minute) =>
    cronerOf(`${minute % 60} 3 * * *`, 'Europe/Berlin'),
  );
  const croner = (heap() - beforeCroner) / crons.length;
  return { firelock: Math.round(firelock), croner: Math.round(croner), expressions };
}

function heap(): number {
  if (!globalThis.gc) throw new Error('run it with node --expose-gc');
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

function print({ machine, speed, bytes, longest }: Report): void {
  const { cpu, cores, memoryGiB, system, node } = machine;
  const number = (value: number): string => value.toLocaleString('en').padStart(14);
  const line = (title: string, columns: string[]): string =>
    title.padEnd(36) + columns.map((column) => column.padStart(14)).join('');
  console.log(
    `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}, tz ${process.versions['tz']}\n`,
  );
  console.log(line('next(previous fire) per second', ['firelock', 'with look-up', 'croner']));
  for (const { expression, zone, firelock, withLookUp, croner } of speed) {
    console.log(line(`${expression}  ${zone}`, [number(firelock), number(withLookUp), number(croner)]));
  }
  console.log(
    `\nheap per expression in use, of ${bytes.expressions}: ${bytes.firelock} bytes (a Cron object: ${bytes.croner})`,
  );
  console.log(`longest of ${longest.calls} cold calls: ${describeCall(longest.accepted)}`);
  console.log(`longest refusal: ${describeCall(longest.refused)}`);
  console.log(`first call of a process: ${describeCall(longest.first)}`);
}

function describeCall({ ms, what }: Call): string {
  return `${ms.toFixed(2)} ms (${what})`;
}
