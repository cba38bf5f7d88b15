import { Counter, Gauge, type Registry } from 'prom-client';
import type { Handlers } from '../handlers.ts';

/** What is kept and what is dropped; the gauges are as old as this instance's last look, every ten minutes. */
export function historyHandlers(registry: Registry): Handlers {
  const registers = [registry];
  const dropped = new Counter({
    name: 'firelock_history_days_dropped_total',
    help: 'Days of history that this instance dropped, as they are older than the retention.',
    registers,
  });
  const days = new Gauge({
    name: 'firelock_history_days',
    help: 'Days of history that have a partition, coming ones included.',
    registers,
  });
  const oldest = new Gauge({
    name: 'firelock_history_oldest_day_timestamp_seconds',
    help: 'When the oldest of them began.',
    registers,
  });
  // Absent until it is known.
  oldest.remove();
  const ahead = new Gauge({
    name: 'firelock_history_days_ahead',
    help: 'Coming days that have a partition already. What ends on a day without one goes to the default partition.',
    registers,
  });
  const late = new Gauge({
    name: 'firelock_history_days_late',
    help: 'Days older than the retention that could not be dropped yet: another transaction uses them.',
    registers,
  });
  return {
    historyDropped: (event) => dropped.inc(event.days.length),
    partitionsCounted: (event) => ahead.set(event.ahead),
    historySeen: (event) => {
      days.set(event.days);
      if (event.oldest !== null) oldest.set(event.oldest / 1000);
      late.set(event.late);
    },
  };
}
