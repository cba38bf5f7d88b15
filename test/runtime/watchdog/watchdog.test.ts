import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/runtime/clock.ts';
import { createEventBus } from '../../../src/runtime/event-bus.ts';
import { createLoop } from '../../../src/runtime/loop/loop.ts';
import { createWatchdog } from '../../../src/runtime/watchdog/watchdog.ts';
import { until } from '../../support/until.ts';

it('a watchdog reports a loop that never comes back from a pass, and none that fails or turns', async () => {
  const deps = { clock: systemClock, events: createEventBus() };
  const loops = [
    createLoop({ ...deps, name: 'turning', body: () => Promise.resolve(50) }),
    createLoop({ ...deps, name: 'failing', body: () => Promise.reject(new Error('again')) }),
    createLoop({ ...deps, name: 'asleep', body: () => Promise.resolve(60_000) }),
    createLoop({ ...deps, name: 'slow', body: () => setTimeout(1_500, 0) }),
  ];
  const stuck = createLoop({ ...deps, name: 'stuck', body: () => new Promise<number>(() => undefined) });
  const reported: string[] = [];
  const onStuck = (loop: string) => void reported.push(loop);
  const watchdog = createWatchdog({
    loops: [...loops, stuck],
    maxTurns: 3,
    onStuck,
    onThreadLost: (error) => reported.push(error.message),
  });
  for (const service of [...loops, stuck, watchdog]) void service.start();
  await until(() => (reported.length > 0 ? true : null));
  await setTimeout(1_500);
  expect(reported).toEqual(['stuck']);
  await watchdog.stop();
  for (const loop of loops) await loop.stop();
});

it('a watchdog ends a process whose event loop is blocked, and the process says so', async () => {
  const program = `
    import { createWatchdog } from './src/runtime/watchdog/watchdog.ts';
    createWatchdog({ loops: [], maxTurns: 2, onStuck: () => {}, onThreadLost: () => {} }).start();
    setTimeout(() => { console.log('blocked'); for (;;); }, 300);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: join(import.meta.dirname, '..', '..', '..'),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => output.push(String(data)));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect([code, signal]).toEqual([null, 'SIGKILL']);
  expect(output.join('')).toMatch(/^blocked\nfirelock: its event loop has been blocked/);
});
