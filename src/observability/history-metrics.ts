import { Counter, Gauge, type Registry } from 'prom-client';
import type { Handlers } from './handlers.ts';

/** What is kept and what goes; the gauges are as old as the last look of this instance, every ten minutes. */
export function historyHandlers(registry: Registry): Handlers {
  const registers = [registry];
  const dropped = new Counter({
    name: 'firelock_runs_dropped_total',
    help: 'Runs of the days that this instance dropped, as they ended longer ago than history is kept.',
    registers,
  });
  const days = new Gauge({
    name: 'firelock_history_days',
    help: 'Days of runs that have tables of their own, coming ones included.',
    registers,
  });
  const oldest = new Gauge({
    name: 'firelock_history_oldest_day_timestamp_seconds',
    help: 'When the oldest of them began; of what was there before there were days, the last one.',
    registers,
  });
  // Until it is known.
  oldest.remove();
  const ahead = new Gauge({
    name: 'firelock_history_days_ahead',
    help: 'Coming days that have tables of their own already. Where tomorrow has none, it goes to the default partition.',
    registers,
  });
  const kept = new Gauge({
    name: 'firelock_history_days_kept',
    help: 'Days that are older than history is kept and could not be dropped: runs of it are open, or needed by open ones; some ended late; a lock could not be had.',
    labelNames: ['reason'],
    registers,
  });
  return {
    historyDropped: (event) => dropped.inc(event.days.reduce((sum, { runs }) => sum + runs, 0)),
    daysMade: (event) => ahead.set(event.ahead),
    historySeen: (event) => {
      days.set(event.days);
      if (event.oldest !== null) oldest.set(event.oldest / 1000);
      for (const [reason, count] of Object.entries(event.kept)) kept.set({ reason }, count);
    },
  };
}
