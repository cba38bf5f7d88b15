/**
 * Writes openapi/openapi.json from the routes, and openapi/contract.txt, which is in git: by its lines a reviewer sees which part of the
 * contract a change changes. With --check, fails when the committed lines are others.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { apiDocument } from './support/api-document.ts';
import { type Contract, contractLines } from './support/contract-lines.ts';

const file = join(import.meta.dirname, '..', 'openapi', 'contract.txt');
const lines = contractLines(JSON.parse(await apiDocument()) as Contract);

if (process.argv.includes('--check')) await check();
else await writeFile(file, `${lines.join('\n')}\n`);

async function check(): Promise<void> {
  const committed = (await readFile(file, 'utf8').catch(() => '')).trimEnd().split('\n');
  const gone = committed.filter((line) => !lines.includes(line)).map((line) => `- ${line}`);
  const come = lines.filter((line) => !committed.includes(line)).map((line) => `+ ${line}`);
  if (gone.length + come.length === 0) {
    console.log('openapi/contract.txt is up to date with the routes.');
    return;
  }
  console.error(
    [...['openapi/contract.txt is stale. Run `npm run openapi` and commit what it writes:', ...gone, ...come]].join(
      '\n',
    ),
  );
  process.exitCode = 1;
}
