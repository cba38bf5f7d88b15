import { expect, test } from 'vitest';
import { SHIPPED_OPTIONS } from '../../bench/support/processes/daemon.ts';
import { readText } from './kit.ts';

test('npm start, the image and the unit start Node with the options that are measured', () => {
  const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };
  const options = SHIPPED_OPTIONS.join(' ');
  expect(scripts['start']).toMatch(`exec node ${options} `);
  const image = JSON.stringify(['node', ...SHIPPED_OPTIONS, 'dist/main.js']).replaceAll(',', ', ');
  expect(readText('Dockerfile')).toContain(`ENTRYPOINT ${image}`);
  expect(readText('deploy/systemd/firelock.service')).toContain(`ExecStart=/usr/bin/node ${options} /opt`);
});
