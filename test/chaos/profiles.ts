import type { CampaignOptions } from './campaign.ts';
import { type NemesisOptions, FULL_WEIGHTS } from './faults/faults.ts';

/** A campaign but for its seed, its source and what it says. */
interface Profile extends Omit<CampaignOptions, 'seed' | 'root' | 'say' | 'disturb'> {
  nemesis: NemesisOptions;
}

const PROFILES: Record<string, Profile> = {
  /** Every fault there is, at more than a hundred fires a second. */
  full: {
    nemesis: { weights: FULL_WEIGHTS, everyMs: 4_000, seconds: 600 },
    schedules: 200,
    instances: 3,
    workers: 2,
    editEveryMs: 300,
    fireEveryMs: 1_000,
    rates: {
      answers: { slow: 0.03, unavailable: 0.03, error: 0.02, lost: 0.03, stalled: 0.01, dripped: 0.01 },
      lookupFails: 0.1,
    },
    drainSeconds: 90,
  },
  /** What fits into the tests: fewer schedules, faults close together, none that takes long. */
  short: {
    nemesis: {
      weights: { ...FULL_WEIGHTS, outage: 0, wrongClock: 2, killAll: 2 },
      everyMs: 2_500,
      seconds: 35,
      least: 6,
    },
    schedules: 60,
    instances: 3,
    workers: 2,
    editEveryMs: 500,
    fireEveryMs: 1_000,
    rates: {
      answers: { slow: 0.03, unavailable: 0.03, error: 0.02, lost: 0.04, stalled: 0.01, dripped: 0.01 },
      lookupFails: 0.1,
    },
    drainSeconds: 90,
  },
};

export function profileOf(name: string): Profile {
  const profile = PROFILES[name];
  if (!profile) throw new Error(`there is no profile ${name}; there are ${Object.keys(PROFILES).join(', ')}`);
  return profile;
}
