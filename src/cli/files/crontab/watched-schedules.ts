import { cronTimes } from '../../../core/cron/cron.ts';
import { EARLIEST } from '../../../core/instant.ts';
import type { Import, Imported, LineCommand, Remark } from './imported.ts';
import { linesIn } from '../../common/arguments.ts';

/** The same schedules while the other scheduler goes on: they record, send nothing, and wait for reports. */
export function watched({ schedules, remarks }: Import): Import {
  const delayed = schedules.filter(({ fields }) => fields['jitterSeconds'] !== undefined);
  return {
    schedules: schedules.map(watchedOne),
    remarks: [...remarks, ...delayed.map(({ line }): Remark => ({ line, message: DELAY, isLost: false }))],
  };
}

const DELAY = 'RANDOM_DELAY: no jitterSeconds while firelock only watches, since cron chooses another delay';

function watchedOne({ fields, ...rest }: Imported): Imported {
  const { id, jitterSeconds: delay = 0, ...others } = fields;
  const completionTimeoutSeconds = patienceSeconds(others, Number(delay));
  return { ...rest, fields: { id, observe: { until: null }, completionTimeoutSeconds, ...others } };
}

const USUAL_SECONDS = 3600;

/** Shorter than any gap: a report is for the oldest run that is open, so a run that was missed must have ended before the next one. */
function patienceSeconds(fields: Readonly<Record<string, unknown>>, delaySeconds: number): number {
  return Math.min(USUAL_SECONDS + delaySeconds, Math.floor((shortestGapSeconds(fields) * 5) / 6));
}

const MOMENTS = 64;

function shortestGapSeconds({ everySeconds, cron, timezone }: Readonly<Record<string, unknown>>): number {
  if (typeof everySeconds === 'number') return everySeconds;
  const times = cronTimes(String(cron), String(timezone), 'x');
  let shortest = Infinity;
  let last: number | null = null;
  for (let at = times.next(EARLIEST), count = 0; at !== null && count < MOMENTS; at = times.next(at)) {
    if (last !== null) shortest = Math.min(shortest, (at - last) / 1000);
    last = at;
    count += 1;
  }
  return shortest;
}

/** Of Debian's cron: where a command has one byte more, it runs nothing of the whole crontab. */
const MAX_COMMAND_BYTES = 998;
const SHELLS = new Set(['sh', 'dash', 'bash', 'ash', 'ksh', 'ksh93', 'mksh', 'zsh']);
const BEGIN = '_fl_id=';

/**
 * What stands before a command whose job reports: its start, and its exit code whichever way the shell ends. Each
 * call runs in the background, reads nothing and prints nothing: neither the command’s `wait` nor cron waits for it, and cron mails
 * nothing of it.
 */
function reporter(url: string): string {
  const call = `curl -fsS -m 10 --retry 5 --retry-connrefused "${url}/$1\${_fl_id:+?rid=$_fl_id}"`;
  return (
    `${BEGIN}$({ cat /proc/sys/kernel/random/uuid||uuidgen;} 2>/dev/null);` +
    `_fl(){ (${call} </dev/null >/dev/null 2>&1 &);};trap '_fl $?' EXIT;_fl start; `
  );
}

export function reportsAlready(command: string): boolean {
  return command.startsWith(BEGIN);
}

/** The address for the reports of a key, as it may stand between double quotes in a line of cron. */
function pingUrl(server: string, key: string): string {
  const quoted = server.replace(/[^\w.~:/@%[\]-]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return `${quoted}/ping/${key}`.replaceAll('%', '\\%');
}

/** What of it can report: the other lines are not carried over, since they would be watched and never heard. */
export function reportable({ schedules, remarks }: Import, crontab: Buffer, server: string): Import {
  const lines = [...linesIn(crontab)];
  const added = reporter(pingUrl(server, '-'.repeat(22))).length;
  const kept: Imported[] = [];
  const lost = [...remarks];
  for (const one of schedules) {
    const { line, command } = one;
    const why = command === undefined ? null : whyNot(command, lines[line - 1] ?? Buffer.alloc(0), added);
    if (why === null) kept.push(one);
    else lost.push({ line, message: `not carried over: ${why}`, isLost: true });
  }
  return { schedules: kept, remarks: lost };
}

function whyNot({ text, at, shell }: LineCommand, line: Buffer, added: number): string | null {
  if (!SHELLS.has(shell.split('/').at(-1) ?? ''))
    return `it would report by words of a POSIX shell, and SHELL is ${shell}`;
  // Else its bytes are not those that cron sees there.
  if (!/^[\t -~]*$/.test(line.toString('latin1', 0, at))) return 'it does not begin with ASCII';
  const length = line.toString('latin1', at).replace(/\n$/, '').length + added;
  if (length > MAX_COMMAND_BYTES)
    return `with what reports, its command would have ${length} bytes; Debian's cron takes ${MAX_COMMAND_BYTES}: put it into a script`;
  const [, word] = IN_ITS_PLACE.exec(text.replace(QUOTED, "''")) ?? [];
  if (word === undefined) return null;
  return word === 'trap'
    ? 'its trap would take the place of the one that reports: put it into a script'
    : 'its exec takes the place of the shell that would report: leave out exec';
}

const QUOTED = /'[^']*'|"(?:\\.|[^"\\])*"/g;
/** `exec` with nothing but redirections goes on in the same shell. */
const IN_ITS_PLACE = /(?:^|[;&|({]|\b(?:then|do|else)\b)\s*(?:\w+=\S*\s+)*(trap|exec)\s+(?!\d*[<>])/;

/** The crontab with what reports before the command of each of these lines; all other bytes are as they were. */
export function reportingCrontab(
  crontab: Buffer,
  schedules: readonly Imported[],
  { server, keys }: { server: string; keys: ReadonlyMap<unknown, string> },
): Buffer {
  const byLine = new Map(schedules.map((one) => [one.line, one]));
  const parts = [...linesIn(crontab)].flatMap((line, index) => {
    const { command, fields } = byLine.get(index + 1) ?? {};
    if (command === undefined) return [line];
    const added = reporter(pingUrl(server, keys.get(fields?.['id']) ?? ''));
    return [line.subarray(0, command.at), Buffer.from(added), line.subarray(command.at)];
  });
  return Buffer.concat(parts);
}
