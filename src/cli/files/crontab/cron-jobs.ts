import { LineCounter, isMap, isSeq, parseAllDocuments } from 'yaml';
import { isObject } from '../../../api/http/json/json-body.ts';
import { offsetOf } from '../../../schedules-file/read/places.ts';
import { NotCarriedOver, checkTimes, type Import, type ImportOptions } from './imported.ts';

/** Whether a text contains manifests of Kubernetes rather than a crontab. */
export function isManifest(text: string): boolean {
  return /^(?:\s*-\s+|\s*"?)kind"?\s*:\s*"?(?:CronJob|List)\b/m.test(text) || /^apiVersion\s*:/m.test(text);
}

/** The CronJobs of manifests, several documents or lists of them. */
export function readCronJobs(text: string, options: ImportOptions): Import {
  const read: Import = { schedules: [], remarks: [] };
  for (const { line, job, broken } of jobsOf(text)) {
    try {
      if (broken !== undefined) throw new NotCarriedOver(broken);
      const { fields, notes } = scheduleOf(job, options);
      read.schedules.push({ line, fields });
      read.remarks.push(...notes.map((message) => ({ line, message, isLost: false })));
    } catch (error) {
      if (!(error instanceof NotCarriedOver)) throw error;
      read.remarks.push({ line, message: `not carried over: ${error.message}`, isLost: true });
    }
  }
  return read;
}

interface Found {
  line: number;
  job: unknown;
  /** Why it cannot be read. */
  broken?: string;
}

function* jobsOf(text: string): Generator<Found, void, void> {
  const lines = new LineCounter();
  const lineAt = (offset: number) => lines.linePos(offset).line;
  for (const document of [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })]) {
    for (const { message, pos } of document.errors)
      yield { line: lineAt(pos[0]), job: null, broken: message };
    if (document.errors.length > 0 || document.contents === null) continue;
    const root: unknown = document.toJS({ maxAliasCount: 1000 });
    if (root === null) continue;
    const list = isMap(document.contents) ? document.contents.get('items') : null;
    if (!isSeq(list) || !isObject(root)) yield { line: lineAt(document.contents.range[0]), job: root };
    else
      for (const [index, item] of list.items.entries())
        yield {
          line: lineAt(offsetOf(item) ?? 0),
          job: (root['items'] as unknown[])[index],
        };
  }
}

const OVERLAPS: Readonly<Record<string, string>> = { Allow: 'allow', Forbid: 'skip', Replace: 'replace' };
const HISTORY_LIMITS = ['successfulJobsHistoryLimit', 'failedJobsHistoryLimit'];

function scheduleOf(job: unknown, { timezone: standard, target }: ImportOptions) {
  const { what, name, namespace, spec } = cronJobOf(job);
  const template = objectOf(
    objectOf(spec['jobTemplate'], `${what}: jobTemplate`)['spec'],
    `${what}: its job`,
  );
  const {
    schedule,
    timeZone,
    suspend,
    concurrencyPolicy = 'Allow',
    startingDeadlineSeconds: deadline,
  } = spec;
  const overlap = OVERLAPS[String(concurrencyPolicy)];
  if (typeof schedule !== 'string') throw new NotCarriedOver(`${what} has no schedule`);
  if (overlap === undefined)
    throw new NotCarriedOver(`${what}: concurrencyPolicy is ${String(concurrencyPolicy)}`);
  const zone = typeof timeZone === 'string' ? timeZone : null;
  const fields = {
    id: `${namespace}.${name}`,
    ...kubernetesTimes(schedule, { timeZone: zone, standard }),
    ...(suspend === true ? { enabled: false } : {}),
    overlap,
    // Without a deadline, Kubernetes makes up for missed starts once.
    ...(typeof deadline === 'number' ? byDeadline(deadline) : { catchUp: 'latest' }),
    retry: retryOf(template, what),
    target,
    payload: { namespace, name, job: template },
  };
  const dropped = HISTORY_LIMITS.filter((one) => spec[one] !== undefined);
  return {
    fields,
    notes: dropped.map((one) => `${what}: ${one} has no meaning here: history is kept by days`),
  };
}

/** No Job is started later than that: neither one that was missed, nor one that no worker claimed in time. */
function byDeadline(seconds: number): Record<string, unknown> {
  const bounded = { graceSeconds: seconds, catchUp: 'skip' };
  return seconds < 1 ? bounded : { ...bounded, expiresAfterSeconds: seconds };
}

function cronJobOf(job: unknown) {
  const { kind, metadata, spec } = objectOf(job, 'the document');
  const { name, namespace = 'default' } = objectOf(metadata, 'metadata');
  if (typeof name !== 'string') throw new NotCarriedOver('it has no name');
  const what = `${String(kind)} ${name}`;
  if (kind !== 'CronJob') throw new NotCarriedOver(`${what} is not a CronJob`);
  return { what, name, namespace: String(namespace), spec: objectOf(spec, `${what}: spec`) };
}

/** Kubernetes waits 10 s, twice as long each time, and 6 minutes at most. */
function retryOf({ backoffLimit = 6 }: Record<string, unknown>, what: string) {
  const limit = Number(backoffLimit);
  if (!Number.isInteger(limit) || limit < 0 || limit > 99)
    throw new NotCarriedOver(
      `${what}: backoffLimit is ${String(backoffLimit)}; firelock makes at most 100 attempts`,
    );
  return { maxAttempts: limit + 1, minBackoffSeconds: 10, maxBackoffSeconds: 360 };
}

/** @throws NotCarriedOver */
function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (!isObject(value)) throw new NotCarriedOver(`${what} is not an object`);
  return value;
}

/** When a CronJob runs, as firelock writes it. @throws NotCarriedOver */
function kubernetesTimes(
  schedule: string,
  { timeZone, standard }: { timeZone: string | null; standard: string },
): Record<string, unknown> {
  const [, named, rest = schedule] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/s.exec(schedule) ?? [];
  const [, duration] = /^@every\s+(\S+)$/.exec(rest.trim()) ?? [];
  if (duration !== undefined) return { everySeconds: secondsOf(duration) };
  const timezone = timeZone ?? named ?? standard;
  const cron = rest.trim().split(/\s+/).map(fieldOf).join(' ');
  checkTimes(cron, timezone);
  return { cron, timezone };
}

/** In Kubernetes, `?` means `*`, and `5/15` begins at 5. firelock gives these another meaning. */
function fieldOf(field: string, index: number): string {
  if (field.startsWith('@')) return field;
  if (/[LWH#+]/.test(field.replace(/[a-z]{3}/gi, '')))
    throw new NotCarriedOver(`Kubernetes does not understand “${field}”`);
  if (/[*?][^,]*,|,[*?]/.test(field)) throw new NotCarriedOver(`“${field}” is a list that contains *`);
  return field.replaceAll('?', '*').replace(/(^|,)(\d+)\//g, `$1$2-${HIGHEST[index] ?? 0}/`);
}

const HIGHEST = [59, 23, 31, 12, 6];

function secondsOf(duration: string): number {
  const [, hours = '0', minutes = '0', seconds = '0'] =
    /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(duration) ?? [];
  const total = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
  if (total === 0) throw new NotCarriedOver(`@every ${duration} is not a number of whole seconds`);
  return total;
}
