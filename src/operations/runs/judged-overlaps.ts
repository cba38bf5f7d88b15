/**
 * Guarantees: an operation and the flow emit the same events about a judgement of overlaps.
 * Transaction: none; the caller has committed.
 * If the process dies here: the rows say what was done, and no event does.
 */
import type { EventBus } from '../../runtime/event-bus.ts';
import type { JudgedOverlaps } from '../../store/runs/overlaps.ts';

/** Events about a judgement of overlaps, once it is committed. */
export function emitJudged(events: EventBus, { skipped, replaced }: JudgedOverlaps): void {
  if (skipped > 0) events.emit({ type: 'runsSkipped', reason: 'overlap', count: skipped });
  if (replaced > 0) events.emit({ type: 'runsCancelled', reason: 'replaced', count: replaced });
}
