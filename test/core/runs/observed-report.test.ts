import { describe, expect, it } from 'vitest';
import {
  type MatchedRun,
  type Report,
  type ReportKind,
  matchOpenFirst,
  matchReport,
} from '../../../src/core/runs/observed-report.ts';
import { createRandom } from '../../chaos/random.ts';

const MINUTE = 60_000;
const RIDS = ['a', 'b', 'c'] as const;
const KINDS: readonly ReportKind[] = ['start', 'success', 'failure', 'log'];

interface ModelRun extends MatchedRun {
  extra: boolean;
}

const isOpen = ({ status }: MatchedRun) => status === 'pending' || status === 'running';
const isExpired = ({ status, error }: MatchedRun) => status === 'failed' && error?.kind === 'expired';

/** The text of the contract, sentence by sentence, over all runs. */
function asTheContractSays({ kind, rid }: Report, runs: readonly ModelRun[], now: number, next: number | null) {
  if (rid !== null) for (const run of runs) if (run.executionId === rid) return run;
  let oldest: ModelRun | null = null;
  for (const run of runs) {
    const otherHolds = run.executionId !== null;
    if (!isOpen(run) || otherHolds || (kind === 'start' && run.status !== 'pending')) continue;
    if (oldest === null || run.scheduledFor < oldest.scheduledFor) oldest = run;
  }
  if (oldest) return oldest;
  if (kind === 'log') return 'dropped';
  if (next !== null && next - now <= MINUTE) return 'next';
  let newest: ModelRun | null = null;
  for (const run of runs)
    if (isExpired(run) && run.executionId === null && (newest === null || run.scheduledFor > newest.scheduledFor))
      newest = run;
  return kind !== 'start' && newest ? newest : 'extra';
}

/** What the database looks up: of each rule the first. */
function candidates(runs: readonly ModelRun[], { kind, rid }: Report): ModelRun[] {
  const free = runs.filter(({ executionId }) => executionId === null);
  const sorted = [...free].sort((a, b) => a.scheduledFor - b.scheduledFor);
  const found = [
    rid === null ? undefined : runs.find(({ executionId }) => executionId === rid),
    sorted.find(({ status }) => status === 'pending'),
    kind === 'start' ? undefined : sorted.find(({ status }) => status === 'running'),
    kind === 'success' || kind === 'failure' ? sorted.findLast(isExpired) : undefined,
  ];
  return found.filter((run) => run !== undefined);
}

/** What a report makes of its run, as far as the next one can tell. */
function apply(run: ModelRun, { kind, rid }: Report): void {
  if (!isOpen(run) && !(isExpired(run) && kind !== 'start' && kind !== 'log')) return;
  run.executionId ??= rid;
  if (kind === 'start') run.status = 'running';
  if (kind === 'success') Object.assign(run, { status: 'succeeded', error: null });
  if (kind === 'failure') Object.assign(run, { status: 'failed', error: { kind: 'reported', message: '' } });
}

function expire(run: ModelRun): void {
  Object.assign(run, { status: 'failed', error: { kind: 'expired', message: '' } });
}

describe('which run a report is for', () => {
  it('is what the contract says, in any sequence of moments, reports and silence, of all runs and of the candidates', async () => {
    const reached = new Map<string, number>();
    for (let seed = 1; seed <= 300; seed += 1) {
      const chance = createRandom(seed, 'reports');
      const random = (below: number) => Math.floor(chance.next() * below);
      const runs: ModelRun[] = [];
      const every = (1 + random(5)) * MINUTE;
      let now = 0;
      let made = 0;
      const make = (scheduledFor: number, extra: boolean): ModelRun => {
        const run: ModelRun = { scheduledFor, status: 'pending', executionId: null, error: null, extra };
        runs.push(run);
        return run;
      };
      for (let step = 0; step < 60; step += 1) {
        now += random(2 * MINUTE);
        for (; made + every <= now; made += every) make(made + every, false);
        runs.filter((run) => isOpen(run) && now - run.scheduledFor > 4 * MINUTE && random(2) === 0).forEach(expire);
        const kind = KINDS[random(KINDS.length)] ?? 'log';
        const report = { kind, rid: random(2) === 0 ? null : (RIDS[random(RIDS.length)] ?? null) };
        const nextDueAt = random(4) === 0 ? null : made + every;
        const expected = asTheContractSays(report, runs, now, nextDueAt);
        const some = candidates(runs, report);
        const readEnded = () => Promise.resolve(some.filter((run) => !isOpen(run)));
        const moment = { now, nextDueAt };
        for (const match of [
          matchReport(
            report,
            [...runs].sort(() => random(3) - 1),
            moment,
          ),
          await matchOpenFirst(report, { open: some.filter(isOpen), readEnded }, moment),
        ])
          expect(match.for === 'run' ? match.run : match.for, `seed ${seed}, step ${step}`).toBe(expected);
        const which = typeof expected === 'string' ? expected : isExpired(expected) ? 'expired' : expected.status;
        reached.set(which, (reached.get(which) ?? 0) + 1);
        if (expected === 'next') made += every;
        if (expected === 'next') apply(make(made, false), report);
        else if (expected === 'extra') apply(make(now, true), report);
        else if (typeof expected !== 'string') apply(expected, report);
      }
    }
    const all = ['dropped', 'expired', 'extra', 'failed', 'next', 'pending', 'running', 'succeeded'];
    expect([...reached.keys()].sort()).toEqual(all);
    expect(Math.min(...reached.values())).toBeGreaterThan(20);
  });
});
