import { type Random, createRandom } from '../../chaos/random.ts';
import type { Definition, Edit, Story } from './edits-oracle.ts';
import { dateOf } from './walked-dates.ts';
import { recentTransitions } from './zones.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Longer than a fire is moved: no edit reaches back beyond the creation. */
const QUIET_DAYS = 36;
const EDITED_DAYS = 24;
const LEFT_DAYS = 36;

/** The same for the same shard, wherever the zone data is the same. Edits lie close together, often beside a change of the clocks. */
export function stories(shard: number, count: number): Story[] {
  const random = createRandom(20261225, `edits ${shard}`);
  const zones = [...recentTransitions().values()].filter((ofZone) => ofZone.length > 0);
  return Array.from({ length: count }, () => {
    const { zone, utcMinute } = random.pick(random.pick(zones));
    const middle = utcMinute * 60_000 + Math.round(random.between(-10, 10)) * DAY_MS;
    return storyAround(random, zone, middle);
  });
}

function storyAround(random: Random, zone: string, middle: number): Story {
  const from = middle - (EDITED_DAYS / 2) * DAY_MS;
  const moments = Array.from({ length: 1 + Math.floor(random.between(0, 6)) }, () => {
    const at = Math.round(from + random.between(0, EDITED_DAYS) * DAY_MS);
    // Often on a moment at which something fires, or a day begins.
    return random.chance(0.5) ? at - (at % HOUR_MS) : at;
  });
  let present = definitionNear(random, middle);
  const definition = present;
  const edits = [...new Set(moments)]
    .sort((a, b) => a - b)
    .map((at): Edit => {
      if (random.chance(0.5)) return { at, definition: (present = changed(random, present, middle)) };
      const [calendar, reachesLater] = [random.pick([0, 1] as const), random.chance(0.3)];
      return { at, calendar, dates: entriesNear(random, middle, 4), reachesLater };
    });
  return {
    ...{
      zone,
      definition,
      edits,
      calendars: [entriesNear(random, middle, 4), entriesNear(random, middle, 2)],
    },
    ...{ start: from - QUIET_DAYS * DAY_MS, end: from + (EDITED_DAYS + LEFT_DAYS) * DAY_MS },
  };
}

const HOURS = ['0', '1', '2', '3', '9', '15', '23', '9,15', '2-3', '0,12', '6-18/6'];
const DAYS = ['* * *', '* * MON-FRI', '* * FRI', '*/2 * *', '* * SAT,MON', '15,L * *', '1-10 * *'];

function definitionNear(random: Random, middle: number): Definition {
  const expression = () => `${random.pick(['0', '30', '0,45'])} ${random.pick(HOURS)} ${random.pick(DAYS)}`;
  const rule = random.pick(['skip', 'pick', 'next', 'next', 'previous', 'previous', 'previous'] as const);
  return {
    expressions: random.chance(0.2) ? [expression(), expression()] : [expression()],
    ...excludedNear(random, middle),
    every: random.chance(0.2)
      ? {
          n: random.pick([2, 3]),
          unit: random.pick(['day', 'week'] as const),
          from: dateOf(Math.floor(middle / DAY_MS) - 90),
        }
      : null,
    pick: rule === 'pick' ? pickOf(random) : null,
    onExcluded: rule === 'pick' ? 'skip' : rule,
  };
}

const excludedNear = (random: Random, middle: number) => ({
  dates: entriesNear(random, middle, 3),
  weekdays: random.pick([[], [], ['sat', 'sun'], ['sun']]),
  namesCalendars: random.chance(0.8),
});

const pickOf = (random: Random): Definition['pick'] => ({
  of: random.pick(['week', 'month'] as const),
  nth: random.pick([[1], [-1], [2], [1, -1], [5]]),
});

/** In one respect, or altogether. */
function changed(random: Random, present: Definition, middle: number): Definition {
  const other = definitionNear(random, middle);
  const { expressions, pick, onExcluded, every } = other;
  return random.pick<() => Definition>([
    () => other,
    () => ({ ...present, expressions }),
    () => ({ ...present, pick, onExcluded }),
    () => ({ ...present, every }),
    () => ({ ...present, ...excludedNear(random, middle) }),
    () => ({ ...present, dates: entriesNear(random, middle, 3) }),
  ])();
}

function entriesNear(random: Random, middle: number, most: number): string[] {
  return Array.from({ length: Math.floor(random.between(0, most + 1)) }, () => {
    const first = Math.floor((middle + random.between(-EDITED_DAYS / 2 - 3, EDITED_DAYS / 2 + 5) * DAY_MS) / DAY_MS);
    if (random.chance(0.5)) return dateOf(first);
    return `${dateOf(first)}/${dateOf(first + Math.floor(random.between(0, random.chance(0.1) ? 40 : 5)))}`;
  });
}
