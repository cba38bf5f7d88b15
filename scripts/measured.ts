/**
 * Runs a command that measures, and writes what it printed into docs/measurements.md, in place of what it printed before.
 *
 *     npm run measured -- bench --only herd      runs `npm run bench -- --only herd`
 */
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import packageJson from '../package.json' with { type: 'json' };

const page = join(import.meta.dirname, '..', 'docs', 'measurements.md');
const [script = '', ...options] = process.argv.slice(2);
if (!(script in packageJson.scripts)) throw new Error(`package.json has no script "${script}"`);

const heading = `## \`npm run ${script}${options.length > 0 ? ` -- ${options.join(' ')}` : ''}\``;
const printed = await run();
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
const date = new Date().toISOString().slice(0, 10);
const section = `${heading}\n\n${date}, commit ${commit}.\n\n\`\`\`text\n${printed.trim()}\n\`\`\`\n`;
writeFileSync(page, replaced(readFileSync(page, 'utf8'), section));

/** What it prints goes to the terminal too. A command that misses a bar has measured all the same. */
async function run(): Promise<string> {
  const child = spawn('npm', ['run', '--silent', script, '--', ...options], {
    stdio: ['inherit', 'pipe', 'inherit'],
  });
  let text = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    process.stdout.write(chunk as string);
    text += chunk as string;
  }
  return text;
}

/** The page with this section instead of the one of the same command, or at its end. */
function replaced(text: string, own: string): string {
  const sections = text.split(/\n(?=## )/);
  const at = sections.findIndex((one) => one.startsWith(`${heading}\n`));
  if (at < 0) return `${text}\n${own}`;
  return sections.with(at, own).join('\n');
}
