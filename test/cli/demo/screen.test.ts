import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createScreen } from '../../../src/cli/demo/screen/screen.ts';
import { type Snapshot, latenessOf } from '../../../src/cli/demo/screen/frame.ts';
import { displayWidth } from '../../../src/cli/terminal/shown-text.ts';
import { firelock } from '../cli.ts';

function snapshot(over: Partial<Snapshot> = {}): Snapshot {
  const instance = { pid: 4711, url: 'http://127.0.0.1:12345', kills: 0 };
  return {
    ...{ phase: 'firing', elapsedMs: 65_400, totalMs: 90_000, schedules: 300 },
    instances: [
      { ...instance, number: 1, state: 'ready' },
      { ...instance, number: 2, state: 'killed', kills: 3 },
      { ...instance, number: 3, state: 'starting', pid: 0, url: '' },
    ],
    ...{ due: 12_345, delivered: 12_300, skipped: 20, open: 25, lostNow: 8, lost: 40, recovered: 32 },
    curve: [
      { open: 0, lost: 0 },
      { open: 40, lost: 16 },
      { open: 20, lost: 8 },
    ],
    lateness: { medianMs: 14, p99Ms: 230, mostMs: 11_200 },
    events: [{ at: 0, atMs: 64_000, text: 'kill -9 of instance 2 (pid 4711), which held 12 runs' }],
    ...over,
  };
}

function drawn(around: { isTerminal: boolean; columns?: number; env?: Record<string, string> }) {
  const said: string[] = [];
  const { isTerminal, columns, env = { NO_COLOR: '1' } } = around;
  const out = { write: (text: string) => void said.push(text), isTerminal, columns };
  return { said, screen: createScreen({ out, env }) };
}

test('a screen shows how it stands, in as many lines each time, drawn over those before', () => {
  const { said, screen } = drawn({ isTerminal: true, columns: 101 });
  screen.show(snapshot());
  screen.show(snapshot({ events: [], lateness: null, curve: [] }));
  const [first = '', second = ''] = said;
  const lines = first.split('\n').map((line) => line.replace('\x1b[2K', '').trimEnd());
  expect(lines).toEqual([
    'firelock demo  3 instances, one PostgreSQL, 300 schedules  1:05 of 1:30  firing',
    '',
    '  instance 1  ready       pid 4711    http://127.0.0.1:12345',
    '  instance 2  KILLED -9   pid 4711    http://127.0.0.1:12345  killed 3 times',
    '  instance 3  starting',
    '',
    '  due     12,345   12,300 delivered, 20 skipped (overlap)',
    '  open        25   ▁█▅',
    `  lost         8   ▁█▅${' '.repeat(43)}of 40 lost, 32 recovered`,
    '  late             half of them 14 ms at most, 99 % 230 ms, the latest 11 s',
    '',
    '  1:04  kill -9 of instance 2 (pid 4711), which held 12 runs',
    '',
    '',
    '',
    '',
    '',
  ]);
  expect(second.startsWith('\x1b[16A\x1b[2K')).toBe(true);
  expect(second.split('\n')).toHaveLength(17);
});

test('no line is wider than the terminal, so that none is broken', () => {
  const { said, screen } = drawn({ isTerminal: true, columns: 50 });
  screen.show(snapshot());
  const widths = (said[0] ?? '').split('\n').map((line) => displayWidth(line.replace('\x1b[2K', '')));
  expect(Math.max(...widths)).toBe(49);
});

test('elsewhere it is a line now and then, and one for each event', () => {
  for (const around of [{ isTerminal: false }, { isTerminal: true, env: { TERM: 'dumb' } }]) {
    const { said, screen } = drawn(around);
    screen.show(snapshot({ elapsedMs: 0 }));
    screen.show(snapshot());
    screen.show(snapshot({ elapsedMs: 69_000 }));
    screen.show(snapshot({ elapsedMs: 71_000, lostNow: 0, lost: 40, recovered: 40 }));
    screen.say({ at: 0, atMs: 72_000, text: 'kill -9 of instance 2' });
    screen.end(['No fire was lost.']);
    expect(said.join('').split('\n')).toEqual([
      '1:05  1 of 3 instances ready; due 12,345, delivered 12,300, skipped 20; open 25; lost 40, recovered 32, lost now 8',
      '1:11  1 of 3 instances ready; due 12,345, delivered 12,300, skipped 20; open 25; lost 40, recovered 40, lost now 0',
      '1:12  kill -9 of instance 2',
      'No fire was lost.',
      '',
    ]);
  }
});

test('lateness is told by nearest rank', () => {
  expect(latenessOf([])).toBeNull();
  expect(latenessOf([9])).toEqual({ medianMs: 9, p99Ms: 9, mostMs: 9 });
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(latenessOf(hundred)).toEqual({ medianMs: 50, p99Ms: 99, mostMs: 100 });
});

test('options that cannot be are named, all at once, and nothing is started', async () => {
  const args = ['demo', '--seconds', '9', '--schedules', 'many', '--kill-every', '20'];
  expect(await firelock(args)).toMatchObject({
    code: 2,
    out: '',
    err:
      'firelock: --seconds is 9; expected: a whole number from 10 to 3600\n' +
      'firelock: --schedules is many; expected: a whole number from 10 to 2000\n' +
      'firelock: --kill-every 20 kills no instance within --seconds 9\n',
  });
});

test('the picture in the documentation is small, loads nothing, and ends with the verdict', () => {
  const picture = readFileSync(new URL('../../../docs/pictures/demo.svg', import.meta.url), 'utf8');
  expect(picture.length).toBeLessThan(150_000);
  expect(picture).not.toMatch(/href|<script|url\(/);
  const stays = [...picture.matchAll(/<text y="\d+">(.*?)<\/text>/g)].map(([, text]) => text ?? '');
  expect(stays.join('\n')).toContain('No fire was lost.');
});
