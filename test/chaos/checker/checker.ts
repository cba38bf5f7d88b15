/**
 * Says from a campaign's history which promises were broken. Everything it expects it computes by itself, from what the
 * clients asked for and what the receiver saw: nothing here imports the daemon's code, but for the state machine of episodes.
 */
import { type Repeats, checkDeliveries } from './check-deliveries.ts';
import { checkAlerts } from './check-alerts.ts';
import { checkCommands } from './check-commands.ts';
import { checkEffects, checkRest } from './check-end.ts';
import { checkLimits, checkOverlap } from './check-overlap.ts';
import { checkPlan } from './check-plan.ts';
import type { History } from './history.ts';
import { timelinesOf } from './timeline.ts';
import { type Report, VIOLATIONS, createReport, foundIn } from './violations.ts';

export interface Verdict {
  ok: boolean;
  violations: Report['found'];
  expectedFires: number;
  repeats: Repeats;
}

export function check(history: History): Verdict {
  const report = createReport(VIOLATIONS);
  const timelines = timelinesOf(history, report);
  checkPlan(history, timelines, report);
  checkOverlap(history, timelines, report);
  checkLimits(history, report);
  const repeats = checkDeliveries(history, timelines, report);
  checkCommands(history, timelines, report);
  checkEffects(history, timelines, report);
  checkAlerts(history, report);
  checkRest(history, report);
  const expectedFires = [...timelines.values()].reduce((sum, { expected }) => sum + expected.size, 0);
  const { ok } = foundIn(report.found);
  return { ok, violations: report.found, expectedFires, repeats };
}
