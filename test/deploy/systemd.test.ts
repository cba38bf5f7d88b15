import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readText, tool } from './kit.ts';

const unit = readText('deploy/systemd/firelock.service');
const valueOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];

describe('the unit', () => {
  test('gives the daemon its time to drain and 10 s more, and starts it again however it ended', () => {
    expect(valueOf('TimeoutStopSec')).toBe(String(30 + 10));
    expect(valueOf('KillSignal')).toBe('SIGTERM');
    expect(valueOf('Restart')).toBe('always');
    expect(valueOf('StartLimitIntervalSec')).toBe('0');
  });

  test('lets it ask which addresses the machine has, without which Node cannot say where it listens', () => {
    // With HOST=0.0.0.0, as docs/deploying.md has it, the daemon ends otherwise as soon as it listens.
    expect(valueOf('RestrictAddressFamilies')?.split(' ').sort()).toEqual([
      'AF_INET',
      'AF_INET6',
      'AF_NETLINK',
      'AF_UNIX',
    ]);
  });

  test('of a worker gives it twice its grace and 10 s more, and leaves alone what commands have left', () => {
    const work = readText('deploy/systemd/firelock-work.service').split('\n');
    expect(work).toEqual(expect.arrayContaining(['TimeoutStopSec=30', 'KillMode=process', 'Restart=always']));
    expect(work.find((line) => line.startsWith('ExecStart='))).toMatch(/main\.js work crontab$/);
  });

  test('is one that systemd understands, and leaves the daemon few rights', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'firelock-unit-'));
    const file = join(folder, 'firelock.service');
    try {
      // What is started is not on this machine.
      await writeFile(file, unit.replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true').replace(/^Doc.*$/m, ''));
      expect(await tool(context, 'systemd-analyze', 'verify', '--man=no', file)).toBe('');
      const security = await tool(context, 'systemd-analyze', 'security', '--offline=true', file);
      const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(security)?.[1]);
      expect(exposure).toBeLessThan(2);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
