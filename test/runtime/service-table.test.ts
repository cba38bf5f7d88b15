import { describe, expect, it } from 'vitest';
import { createEventBus } from '../../src/runtime/event-bus.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createLoop } from '../../src/runtime/loop/loop.ts';
import { type ServiceEntry, createServices, loopsOf } from '../../src/runtime/service-table.ts';
import { until } from '../support/until.ts';

/** What was called, in order. */
function tableOf(...rows: (Pick<ServiceEntry['service'], 'name'> & Partial<Row>)[]) {
  const log: string[] = [];
  const table = rows.map(({ name, start, stop, ...entry }): ServiceEntry => {
    const service = {
      name,
      start: () => {
        log.push(`start ${name}`);
        return start?.();
      },
      stop: () => {
        log.push(`stop ${name}`);
        return stop?.();
      },
    };
    return { starts: 'atOnce', stops: 'work', stopLimitMs: 60_000, ...entry, service };
  });
  const services = createServices(table, {
    onFailure: (service, error) => log.push(`${service} failed: ${String(error)}`),
    onOverdue: (service) => log.push(`${service} is overdue`),
  });
  return { services, log };
}

interface Row extends Omit<ServiceEntry, 'service'> {
  start: () => Promise<void> | void;
  stop: () => Promise<void> | void;
}

const never = () => new Promise<never>(() => undefined);

describe('services', () => {
  it('start in the order of the table, those of the moment only', async () => {
    const { services, log } = tableOf({ name: 'a', starts: 'migrated' }, { name: 'b' }, { name: 'c' });
    await services.start('atOnce');
    expect(log).toEqual(['start b', 'start c']);
    await services.start('migrated');
    expect(log).toEqual(['start b', 'start c', 'start a']);
  });

  it('behind one that fails to start are not started', async () => {
    const { services, log } = tableOf({ name: 'a', start: () => Promise.reject(new Error('no')) }, { name: 'b' });
    await expect(services.start('atOnce')).rejects.toThrow('no');
    expect(log).toEqual(['start a']);
  });

  it('are not started any more once they stop', async () => {
    let begun: () => void = () => undefined;
    const { services, log } = tableOf(
      { name: 'a', start: () => new Promise<void>((resolve) => (begun = resolve)) },
      { name: 'b' },
    );
    const starting = services.start('atOnce');
    await services.stop('work');
    begun();
    await starting;
    expect(log).toEqual(['start a', 'stop a', 'stop b']);
  });

  it.each(['claiming', 'work', 'settling'] as const)(
    'that stop in the phase %s are all called before any is waited for',
    (stops) => {
      const { services, log } = tableOf(
        { name: 'other', stops: 'last' },
        { name: 'a', stops, stop: never },
        {
          name: 'b',
          stops,
          stop: () => {
            throw new Error('no');
          },
        },
        { name: 'c', stops },
      );
      void services.stop(stops);
      expect(log).toEqual(['stop a', 'stop b', 'stop c']);
    },
  );

  it('that stop last do so one after the other, the last of the table first', async () => {
    let stopped: () => void = () => undefined;
    const { services, log } = tableOf(
      { name: 'a', stops: 'last' },
      { name: 'b', stops: 'last', stop: () => new Promise<void>((resolve) => (stopped = resolve)) },
      { name: 'c', stops: 'last' },
    );
    const stopping = services.stop('last');
    await until(() => log.length >= 2 || null);
    expect(log).toEqual(['stop c', 'stop b']);
    stopped();
    await stopping;
    expect(log).toEqual(['stop c', 'stop b', 'stop a']);
  });

  it('that fail to stop, or take too long, are reported and delay no other', async () => {
    const { services, log } = tableOf(
      { name: 'a', stops: 'last' },
      { name: 'b', stops: 'last', stop: () => Promise.reject(new Error('no')) },
      { name: 'c', stops: 'last', stop: never, stopLimitMs: 1 },
    );
    await services.stop('last');
    expect(log).toEqual(['stop c', 'c is overdue', 'stop b', 'b failed: Error: no', 'stop a']);
  });

  it('that turn are known from the table', () => {
    const loop = createLoop({
      name: 'turning',
      clock: systemClock,
      events: createEventBus(),
      body: () => Promise.resolve(0),
    });
    const entry = { starts: 'atOnce', stops: 'work', stopLimitMs: 0 } as const;
    const plain = { name: 'plain', start: () => undefined, stop: () => undefined };
    expect(
      loopsOf([
        { ...entry, service: plain },
        { ...entry, service: loop },
      ]),
    ).toEqual([loop]);
  });
});
