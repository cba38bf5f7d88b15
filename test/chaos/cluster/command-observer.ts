import { readFile } from 'node:fs/promises';
import { send } from '../../support/calls.ts';
import type { Commands, Execution, LogRead } from '../checker/history.ts';
import { GRACE_SECONDS, LEASE_SECONDS, type Worker } from './workers.ts';

/** What the workers said and did, and the logs as the API has them in the end. */
export async function observeCommands(
  workers: readonly Worker[],
  journal: string,
  url: string,
): Promise<Commands> {
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
    if (what === 'ended' && known)
      known.ended = { at: Number(at), code: Number(first), bytes: Number(second) * LINE };
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
  const lines = Array.from({ length: Math.ceil(length / LINE) + 1 }, (_, n) =>
    lineOf(runId, attempt, first + n + 1),
  );
  return lines.join('').slice(from - first * LINE, from - first * LINE + length);
}
