import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs the first shell example under a heading of a page as it stands there, against another address; answers what each call said. */
export async function runShellExample(page: string, heading: string, url: string): Promise<unknown[]> {
  const script = shellExample(page, heading).replaceAll('http://127.0.0.1:8080', url);
  const { stdout } = await run('/bin/sh', ['-ec', `curl() { command curl -sS -w '\\n' "$@"; }\n${script}`]);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

function shellExample(page: string, heading: string): string {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const [, section] = text.split(new RegExp(`^#+ ${heading}$`, 'm'));
  const [, example] = /^```sh\n([^]*?)^```$/m.exec(section ?? '') ?? [];
  if (example === undefined) throw new Error(`${page} has no shell example under “${heading}”`);
  return example;
}
