/**
 * Runs each `check:…` of package.json, two at a time, in the order there: the slowest first. Prints what each wrote once it ends, and
 * fails if one of them does, after all have run. What types, format and lint have found stays in node_modules/.cache: where a file has
 * not changed, they do not look again.
 */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import './client.ts';
import packageJson from '../package.json' with { type: 'json' };

const AT_ONCE = 2;
const waiting = Object.keys(packageJson.scripts).filter((name) => name.startsWith('check:'));
const failed: string[] = [];

async function inTurn(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const started = performance.now();
    const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve));
    const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    const seconds = Math.round((performance.now() - started) / 1000);
    console.log(`\n${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)\n${out}${err}`.trimEnd());
    if (code !== 0) failed.push(name);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, inTurn));
if (failed.length > 0) {
  console.error(`\nfailed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
