import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Instance } from './instance.ts';
import { send } from '../../support/calls.ts';
import type { Beat, Commands, Execution, LogRead } from '../checker/history.ts';
import { type Worker, GRACE_SECONDS, LEASE_SECONDS } from './workers.ts';

/** How often its tick has come round; NaN where it does not answer. */
export async function ticksOf({ url }: Instance): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(30_000) }).catch(() => null);
  const text = (await answer?.text()) ?? '';
  return Number(/^firelock_tick_duration_seconds_count\S* (\d+)/m.exec(text)?.[1] ?? NaN);
}

/** What the API counts; null where it does not. */
export async function statsOf(instances: readonly Instance[]): Promise<Record<string, unknown> | null> {
  const [first] = instances;
  const answer = await fetch(`${first?.url ?? ''}/api/v1/stats`, {
    signal: AbortSignal.timeout(60_000),
  }).catch(() => null);
  if (answer?.status !== 200) {
    await answer?.text();
    return null;
  }
  return (await answer.json()) as Record<string, unknown>;
}

/** The ids under which each instance registered, oldest first, from their logs. */
export async function identitiesOf(instances: readonly Instance[], directory: string): Promise<Map<string, string[]>> {
  const identities = new Map<string, string[]>();
  for (const { name } of instances) {
    const log = await readFile(join(directory, `instance-${name}.log`), 'utf8').catch(() => '');
    const found = log.matchAll(/"instanceId":"([\da-f-]{36})"[^\n]*registered as/g);
    identities.set(
      name,
      [...found].map(([, id]) => id ?? ''),
    );
  }
  return identities;
}

/** What the workers said and did, and the logs as the API has them in the end. */
export async function observeCommands(workers: readonly Worker[], journal: string, url: string): Promise<Commands> {
  const calls = workers.flatMap(({ gateway }) => gateway.calls);
  const executions = executionsIn(await readFile(journal, 'utf8').catch(() => ''));
  const names = new Set(executions.map(({ runId, attempt }) => `${runId} ${attempt}`));
  const logs: LogRead[] = [];
  for (const name of names) {
    const [runId = '', attempt = ''] = name.split(' ');
    logs.push(await readLog(url, runId, Number(attempt)));
  }
  return { leaseSeconds: LEASE_SECONDS, graceSeconds: GRACE_SECONDS, calls, executions, logs, faults: [] };
}

/** As command.sh writes them. A line is in one piece, as it is appended by one call. */
function executionsIn(text: string): Execution[] {
  const executions = new Map<string, Execution>();
  const all: Execution[] = [];
  for (const line of text.split('\n')) {
    const [what, runId = '', attempt = '', at = '', first = '', second = ''] = line.split(' ');
    const name = `${runId} ${attempt}`;
    if (what === 'began') {
      const isBeside = first === 'beside';
      const one = {
        runId,
        attempt: Number(attempt),
        beganAt: Number(at),
        isBeside,
        marker: second,
        ended: null,
      };
      executions.set(name, one);
      all.push(one);
    }
    const known = executions.get(name);
    if (what === 'ended' && known) known.ended = { at: Number(at), code: Number(first), bytes: Number(second) * LINE };
  }
  return all;
}

/** Of what command.sh prints, a line. */
const LINE = 51;

function lineOf(runId: string, attempt: number, number: number): string {
  return `${runId} ${String(attempt).padStart(4)} ${String(number).padStart(8, '0')}\n`;
}

/** Part after part, each compared with what its command has printed there. */
async function readLog(url: string, runId: string, attempt: number): Promise<LogRead> {
  const log: LogRead = { runId, attempt, parts: [], fault: null };
  for (let offset = 0; ;) {
    const part = await send(`${url}/api/v1/runs/${runId}/log?attempt=${attempt}&offset=${offset}`, 'GET');
    if (part.status !== 200) return { ...log, fault: `${part.status} ${part.text}` };
    const next = Number(part.headers.get('firelock-log-offset'));
    const from = offset + Number(part.headers.get('firelock-log-skipped'));
    if (next <= from) return log;
    log.parts.push({ offset: from, bytes: part.text.length });
    if (next - from !== part.text.length) log.fault ??= `${part.text.length} bytes from ${from} to ${next}`;
    if (part.text !== printed(runId, attempt, from, part.text.length))
      log.fault ??= `from ${from} on: ${part.text.slice(0, 2 * LINE)}`;
    offset = next;
  }
}

function printed(runId: string, attempt: number, from: number, length: number): string {
  const first = Math.floor(from / LINE);
  const lines = Array.from({ length: Math.ceil(length / LINE) + 1 }, (_, n) => lineOf(runId, attempt, first + n + 1));
  return lines.join('').slice(from - first * LINE, from - first * LINE + length);
}

/** Measures again and again how long the machine takes for what takes no time. */
interface Pulse {
  /** Those that took long enough to matter. */
  readonly beats: Beat[];
  stop(): Promise<void>;
}

const EVERY_MS = 100;
const MIN_MS = 20;

/** `touch`: something in another process that is answered at once. */
export function startPulse(touch: () => Promise<unknown>): Pulse {
  const beats: Beat[] = [];
  let stopping = false;
  async function beating(): Promise<void> {
    while (!stopping) {
      const [from, began] = [Date.now(), performance.now()];
      await sleep(EVERY_MS);
      await touch();
      const ms = performance.now() - began - EVERY_MS;
      if (ms >= MIN_MS) beats.push({ from, to: Date.now(), ms });
    }
  }
  const beaten = beating();
  return {
    beats,
    stop: async () => {
      stopping = true;
      await beaten;
    },
  };
}
