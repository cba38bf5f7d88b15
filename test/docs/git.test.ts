import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Api, startApi } from '../api/api.ts';
import { firelock } from '../cli/cli.ts';

const root = join(import.meta.dirname, '..', '..');

let api: Api;
let folder: string;
beforeAll(async () => {
  api = await startApi();
  folder = await mkdtemp(join(tmpdir(), 'firelock-docs-'));
});
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

/** The n-th example of a page in that language. */
function example(page: string, language: string, n = 0): string {
  const text = readFileSync(join(root, 'docs', page), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))][n]?.[1] ?? '';
}

/** Runs the lines of an example, of which each is a command of firelock, in this process; answers what they said. */
async function perform(script: string): Promise<string> {
  const env: Record<string, string> = {};
  let said = '';
  for (const line of script.trim().split('\n')) {
    const [, name, value = ''] = /^export (\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) env[name] = value;
    else {
      const [, words = '', file, mayChange] =
        /^firelock (.*?)(?: > (\S+))?( \|\| test \$\? = 2)?$/.exec(line) ?? [];
      const args = words.split(' ').map((word) => (FILE.test(word) ? join(folder, word) : word));
      const { code, out, err } = await firelock(args, { url: api.url, env });
      expect([line, code === 2 && mayChange !== undefined ? 0 : code, err]).toEqual([line, 0, '']);
      if (file === undefined) said += out;
      else await writeFile(join(folder, file), out);
    }
  }
  return said;
}

const FILE = /^\w+\.(?:yaml|json)$|^mycrontab$/;

test('the file of the page about git is planned, applied, and exported as the page says', async () => {
  await writeFile(join(folder, 'schedules.yaml'), example('git.md', 'yaml'));
  const said = await perform(example('git.md', 'sh', 0));
  expect(said.split('\n').filter((line) => line.includes(' to create, '))).toEqual([
    '4 to create, 0 to change, 0 to delete, 0 as they are',
    '4 to create, 0 to change, 0 to delete, 0 as they are',
    '0 to create, 0 to change, 0 to delete, 4 as they are',
  ]);
  await perform(`export REPORTS_TOKEN=example\n${example('git.md', 'sh', 1)}`);
  await perform(`${example('git.md', 'sh', 2)}firelock apply everything.yaml\nfirelock apply billing.json\n`);
});

test('the example of the page about crontabs', async () => {
  await writeFile(join(folder, 'mycrontab'), '0 2 * * * /usr/bin/backup\n');
  expect(await perform(example('crontab.md', 'sh'))).toMatch(/^\+ schedule backup-/);
});
