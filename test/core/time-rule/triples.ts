import { type Random, createRandom } from '../../chaos/random.ts';
import { expressionNear } from './expressions.ts';
import { FIRST_YEAR, LAST_YEAR, type Transition, allZones, pastTransitions, recentTransitions } from './zones.ts';

/** A schedule, and the instant after which its next fires are asked for. */
export interface Triple {
  /** Or several, of which each makes it fire. */
  expression: string | readonly string[];
  zone: string | null;
  from: number;
}

const DAY_MS = 86_400_000;

/** The same for the same seed and shard, wherever the zone data is the same. */
export function triples(shard: number, count: number): Triple[] {
  const random = createRandom(20270328, `time rule ${shard}`);
  const recent = [...recentTransitions().values()].filter((ofZone) => ofZone.length > 0);
  const past = [...pastTransitions().values()].filter((ofZone) => ofZone.length > 0);
  const zones = allZones();
  return Array.from({ length: count }, (_, index) => {
    if (random.chance(0.2)) return anywhere(random, random.pick(zones));
    const ofZone = random.chance(0.15) ? random.pick(past) : recent[index % recent.length];
    return around(random, random.pick(ofZone ?? []));
  });
}

/** Several expressions each, whose values come from one change of the clocks, so that they meet there. */
export function lists(shard: number, count: number): Triple[] {
  const random = createRandom(20270328, `lists ${shard}`);
  const transitions = [...recentTransitions().values()].filter((ofZone) => ofZone.length > 0);
  return Array.from({ length: count }, (_, index) => {
    const transition = random.pick(transitions[index % transitions.length] ?? []);
    const { zone, from } = around(random, transition);
    const members = Array.from({ length: random.chance(0.1) ? 16 : random.pick([2, 2, 3, 4]) }, () =>
      expressionNear(random, random.chance(0.5) ? transition.before : transition.after),
    );
    return { expression: members, zone, from };
  });
}

function around(random: Random, transition: Transition): Triple {
  const expression = expressionNear(random, random.chance(0.5) ? transition.before : transition.after);
  return {
    expression,
    zone: spelled(random, transition.zone),
    from: fromNear(random, transition.utcMinute * 60_000),
  };
}

/** Mostly within two days; often within the hours that matter, and on the very edges. */
function fromNear(random: Random, at: number): number {
  const kind = random.next();
  if (kind < 0.1) return at + random.pick([-1000, -1, 0, 1, 1000, 3_600_000 - 1, 3_600_000, 1_800_000, -3_600_000]);
  const reach = kind < 0.5 ? 3 * 3_600_000 : 2 * DAY_MS;
  const away = Math.round(random.between(-reach, reach));
  return at + (random.chance(0.8) ? away - (away % 1000) : away);
}

function anywhere(random: Random, zone: string): Triple {
  const from = Math.round(random.between(Date.UTC(FIRST_YEAR, 0, 1), Date.UTC(LAST_YEAR + 1, 0, 1)));
  return { expression: expressionNear(random, Math.floor(from / 60_000)), zone: spelled(random, zone), from };
}

/** Zones are known in any letter case; none is UTC. */
function spelled(random: Random, zone: string): string | null {
  if (zone === 'UTC' && random.chance(0.5)) return null;
  return random.chance(0.02) ? zone.toLowerCase() : zone;
}
