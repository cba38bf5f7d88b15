import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestContext } from 'vitest';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

export interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
}

export function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function readAlerts(): Rule[] {
  const { groups } = parse(readText('deploy/helm/firelock/files/alerts.yml')) as {
    groups: { rules: Rule[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

/** What a program says; fails with it where the exit code is not 0. Skips the test where there is no such program. */
export async function tool(
  context: TestContext,
  program: 'promtool' | 'systemd-analyze',
  ...args: string[]
): Promise<string> {
  const { stdout, stderr } = await run(program, args, { cwd: root }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') context.skip(`${program} is not installed`);
    throw error;
  });
  return stdout + stderr;
}

/** Where `scripts/python-tools.ts` puts what the chart is tested with. */
const PYTHON = join(root, 'node_modules', '.cache', 'firelock-chart-tools', 'bin', 'python');

/** What `render_chart.py` answers to a request. */
export async function askHelm<T>(context: TestContext, request: object): Promise<T> {
  if (!existsSync(PYTHON)) context.skip('Helm is not installed: npm run verify:all -- --only=chart-tools');
  const script = join(import.meta.dirname, 'render_chart.py');
  const { stdout } = await run(PYTHON, [script, JSON.stringify(request)], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout) as T;
}

/** The names of metrics in an expression; PromQL's own words are not among them. */
export function metricsIn(expr: string): string[] {
  const named = expr.match(/\b(firelock|process|nodejs)_\w+/g) ?? [];
  return [...new Set(named.map((name) => name.replace(/_(bucket|sum|count)$/, '')))];
}
