import { spawn } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { stripVTControlCharacters } from 'node:util';

/** In a word of a command: the path of a file that gets its counts. */
export const COUNTS = '@COUNTS@';

export interface Step {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** It writes `{"passed": N, "failed": M}`, or vitest's report; else it counts nothing, but fails or does not. */
  readonly counts?: true;
  /** What a machine may lack. A step that lacks it ends with status 2 and says so last, or says `SKIP NAME: why` and succeeds. */
  readonly needs?: string;
  /** Steps without which this one cannot mean anything. */
  readonly after?: readonly string[];
}

export interface Outcome {
  readonly name: string;
  readonly seconds: number;
  readonly result: 'passed' | 'failed' | 'skipped';
  readonly passed: number;
  readonly failed: number;
  /** Why it was skipped, or what of its output tells of the failure. */
  readonly why: string;
}

interface Options {
  /** What may be missing must not be: who calls this has installed it. */
  readonly nothingMayLack: boolean;
  readonly say: (text: string) => void;
  readonly signal: AbortSignal;
}

/** So much of a long output tells of what failed. */
const MAX_LINES = 150;
const LAST_LINES = 30;

/** One after the other, each of them even if an earlier one failed, unless it stands on that. */
export async function runSteps(steps: readonly Step[], options: Options): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const step of steps) {
    if (options.signal.aborted) break;
    const broken = step.after?.find((name) => outcomes.some((one) => one.name === name && one.result !== 'passed'));
    outcomes.push(broken === undefined ? await runStep(step, options) : skipped(step, `${broken} did not pass`));
  }
  return outcomes;
}

async function runStep(step: Step, options: Options): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'firelock-step-'));
  const [counts, output] = [join(folder, 'counts.json'), join(folder, 'output')];
  const command = step.command.map((word) => word.replace(COUNTS, counts));
  const began = performance.now();
  try {
    options.say(`\n== ${command.join(' ')}\n`);
    const status = await execute(command, { env: step.env ?? {}, output, ...options });
    const seconds = Math.round((performance.now() - began) / 1000);
    const outcome = judge(step, { status, seconds, text: readFileSync(output, 'utf8'), counts }, options);
    options.say(`== ${outcome.result} after ${seconds} s\n`);
    return outcome;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Answers its exit status. What it writes is shown as it comes, and kept in a file. */
async function execute(
  [program = '', ...words]: readonly string[],
  { env, output, say, signal }: Options & { env: Readonly<Record<string, string>>; output: string },
): Promise<number> {
  const kept = createWriteStream(output);
  const child = spawn(program, words, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stop = () => child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      say(text);
      kept.write(text);
    });
  const status = await new Promise<number>((resolve) => {
    child.on('error', (error) => {
      kept.write(String(error));
      resolve(1);
    });
    child.on('close', (code) => {
      resolve(code ?? 1);
    });
  });
  signal.removeEventListener('abort', stop);
  await finished(kept.end());
  return status;
}

interface Ended {
  status: number;
  seconds: number;
  text: string;
  /** Path of the file with its counts. */
  counts: string;
}

function judge(step: Step, { status, seconds, text, counts }: Ended, { nothingMayLack }: Options): Outcome {
  const lacks = step.needs === undefined ? undefined : lackOf(status, text);
  if (lacks !== undefined && !nothingMayLack) return skipped(step, lacks, seconds);
  const tally = step.counts === true ? readCounts(counts) : { passed: 0, failed: 0 };
  const isFailed = lacks !== undefined || tally === undefined || status !== 0 || tally.failed > 0;
  return {
    name: step.name,
    seconds,
    result: isFailed ? 'failed' : 'passed',
    passed: tally?.passed ?? 0,
    failed: isFailed ? Math.max(1, tally?.failed ?? 0) : 0,
    why: isFailed ? (tally === undefined ? 'it wrote no count\n' : '') + tellingLines(text) : '',
  };
}

function skipped({ name }: Step, why: string, seconds = 0): Outcome {
  return { name, seconds, result: 'skipped', passed: 0, failed: 0, why };
}

function lackOf(status: number, text: string): string | undefined {
  if (status === 2) return text.trimEnd().split('\n').at(-1) ?? '';
  return status === 0 ? /^SKIP \S+: (.+)$/m.exec(text)?.[1] : undefined;
}

function readCounts(file: string): { passed: number; failed: number } | undefined {
  try {
    const report = JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>;
    const passed = report['numPassedTests'] ?? report['passed'];
    const failed = report['numFailedTests'] ?? report['failed'];
    return passed === undefined || failed === undefined ? undefined : { passed, failed };
  } catch {
    return undefined;
  }
}

/** Those that name what failed, each with what stands below it; else the last ones. vitest colours its lines in CI. */
function tellingLines(text: string): string {
  const lines = stripVTControlCharacters(text).split('\n');
  const near = new Set<number>();
  for (const [index, line] of lines.entries())
    if (/^ *(FAIL|FAILED|failed|not ok) /.test(line))
      for (let below = 0; below < 15; below += 1) near.add(index + below);
  const telling = lines.filter((_, index) => near.has(index)).slice(0, MAX_LINES);
  return (telling.length > 0 ? telling : lines.slice(-LAST_LINES)).join('\n');
}
