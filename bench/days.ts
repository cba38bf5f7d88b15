/**
 * What rules of days cost: herds of 10,000 schedules of each kind, which the tick's own code locks, plans and records through PostgreSQL,
 * beside herds of plain crons in the same minute; and fire times alone. Each round is of later days: no answer is known from the round before.
 *
 *     npm run bench:days -- [--schedules 10000] [--rounds 5] [--json FILE]
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fireTimes } from '../src/core/time/fire-times.ts';
import { median } from './support/measures/statistics.ts';
import { describeMachine } from './support/measures/machine.ts';
import {
  type DayKind,
  type HerdPlanner,
  type Hours,
  type Planned,
  DAY_KINDS,
  makeHerdDue,
  openHerdPlanner,
  timingOfKind,
} from './support/herd-planner.ts';

const { values: options } = parseArgs({
  options: {
    schedules: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'string' },
  },
});
const COUNT = Number(options.schedules);
const ROUNDS = Number(options.rounds);
const KINDS = Object.keys(DAY_KINDS) as DayKind[];
const IDENTITY = { id: 'bench', createdAt: Date.UTC(2021, 0, 1) };
const FROM = Date.UTC(2022, 0, 1);
const UNTIL = Date.UTC(2032, 0, 1);

interface Figures {
  /** Milliseconds of the first round, in which this process reads definitions and calendars. */
  first: Planned;
  rounds: Planned[];
  /** Plain crons, in the same minute. */
  plain: Planned[];
}

/** Up to when each kind has been planned. */
const cursors = new Map<DayKind, number>();

const planner = await openHerdPlanner(KINDS, COUNT);
const report: Record<string, unknown> = { machine: describeMachine(), server: planner.server };
console.log(JSON.stringify(report));
report['microsecondsPerFire'] = printAlone(planner);
for (const hours of ['same', 'spread'] as const) {
  cursors.clear();
  const figures = await measure(planner, hours);
  report[hours] = Object.fromEntries(figures);
  print(hours, figures);
}
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
await planner.close();

/** A kind by itself, as long as it takes: a process keeps what it has read of ten thousand schedules, not of many more. */
async function measure(herds: HerdPlanner, hours: Hours): Promise<Map<DayKind, Figures>> {
  const figures = new Map<DayKind, Figures>();
  for (const kind of KINDS) {
    const [, ...plain] = await roundsOf(herds, 'plain', hours);
    const [first, ...rounds] = await roundsOf(herds, kind, hours);
    if (first) figures.set(kind, { first, rounds, plain });
  }
  return figures;
}

async function roundsOf(herds: HerdPlanner, kind: DayKind, hours: Hours): Promise<Planned[]> {
  const measured: Planned[] = [];
  let from = cursors.get(kind) ?? FROM;
  for (let round = 0; round <= ROUNDS; round += 1) {
    const { now, ...planned } = await oneRound(herds, { kind, hours, from });
    measured.push(planned);
    from = now;
  }
  cursors.set(kind, from);
  return measured;
}

/** On the first day on which they fire after a moment. */
async function oneRound(
  herds: HerdPlanner,
  { kind, hours, from }: { kind: DayKind; hours: Hours; from: number },
): Promise<Planned & { now: number }> {
  const timings = Array.from({ length: COUNT }, (_, index) => timingOfKind(kind, hours, index));
  const [one] = timings;
  if (!one) throw new Error('there is no herd');
  const at = fireTimes(one, IDENTITY, herds.calendars()).next(from) ?? NaN;
  const moments = timings.map((_, index) => (hours === 'same' ? at : at + (index % 82_800) * 1000));
  const now = Math.max(...moments) + 1;
  await makeHerdDue(herds.database, kind, { timings, moments });
  return { ...(await herds.plan(COUNT, now)), now };
}

/** From fire to fire, through ten years and again. */
function printAlone(herds: HerdPlanner): Record<string, number> {
  const each = KINDS.map((kind) => {
    const microseconds = Array.from({ length: 5 }, () => {
      const times = fireTimes(timingOfKind(kind, 'same', 0), IDENTITY, herds.calendars());
      let [at, calls] = [FROM, 0];
      const start = performance.now();
      for (; performance.now() - start < 200; calls += 1) {
        const next = times.next(at);
        at = next === null || next > UNTIL ? FROM : next;
      }
      return ((performance.now() - start) / calls) * 1000;
    });
    return [kind, Number(median(microseconds).toFixed(2))] as const;
  });
  console.log('\nfire times alone, µs a fire');
  for (const [kind, cost] of each) console.log(`${kind.padEnd(16)}${cost.toFixed(2).padStart(8)}`);
  return Object.fromEntries(each);
}

function print(hours: Hours, figures: ReadonlyMap<DayKind, Figures>): void {
  const where = hours === 'same' ? 'all at 09:00' : 'each at a second of its own';
  console.log(`\n${COUNT} schedules, ${where}: median ms of ${ROUNDS} rounds, and the first round`);
  const line = (title: string, cells: string[]) =>
    title.padEnd(16) + cells.map((cell) => cell.padStart(10)).join('');
  console.log(line('', ['planned', '× plain', 'recorded', '× plain', 'first']));
  for (const [kind, { first, rounds, plain }] of figures) {
    const cells = (['planned', 'recorded'] as const).flatMap((what) => {
      const [own, theirs] = [rounds, plain].map((some) => median(some.map((round) => round[what])));
      return [(own ?? NaN).toFixed(0), ((own ?? NaN) / (theirs ?? NaN)).toFixed(2)];
    });
    console.log(line(kind, [...cells, first.planned.toFixed(0)]));
  }
}
