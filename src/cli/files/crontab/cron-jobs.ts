import { type Document, LineCounter, isMap, isSeq, parseAllDocuments } from 'yaml';
import { isObject } from '../../../api/http/json/json-body.ts';
import { scheduleInput } from '../../../api/schedules/schemas.ts';
import { secondsOf } from '../../../core/cron/foreign/foreign-forms.ts';
import { offsetOf } from '../../../schedules-file/read/json-tree.ts';
import { NotCarriedOver, checkFields, checkTimes, type Import, type ImportOptions } from './imported.ts';

/** Whether a text contains manifests of Kubernetes rather than a crontab: YAML, or JSON in as many lines as it likes. */
export function isManifest(text: string): boolean {
  return /^(?:- |[ \t])*(?:apiVersion|kind)[ \t]*:/m.test(text) || /^\s*[{[][^]*"kind"/.test(text);
}

/** The CronJobs of manifests, several documents or lists of them. */
export function readCronJobs(text: string, options: ImportOptions): Import {
  const read: Import = { schedules: [], remarks: [] };
  const say = (line: number, message: string, isLost = false) => read.remarks.push({ line, message, isLost });
  for (const { line, job, broken } of jobsOf(text)) {
    try {
      if (broken !== undefined) throw new NotCarriedOver(broken);
      const other = otherKind(job);
      if (other !== null) {
        say(line, `${other}: skipped, since it is no CronJob`);
        continue;
      }
      const { fields, notes } = scheduleOf(job, options);
      read.schedules.push({ line, fields });
      for (const note of notes) say(line, note);
    } catch (error) {
      if (!(error instanceof NotCarriedOver)) throw error;
      say(line, `not carried over: ${error.message}`, true);
    }
  }
  if (read.schedules.length === 0 && !read.remarks.some(({ isLost }) => isLost))
    say(1, 'there is no CronJob in it', true);
  return read;
}

/** Null: a CronJob, or nothing that says what it is. */
function otherKind(job: unknown): string | null {
  if (!isObject(job) || typeof job['kind'] !== 'string' || job['kind'] === 'CronJob') return null;
  const name = isObject(job['metadata']) ? job['metadata']['name'] : undefined;
  return `${job['kind']}${typeof name === 'string' ? ` ${name}` : ''}`;
}

interface Found {
  line: number;
  job: unknown;
  /** Why it cannot be read. */
  broken?: string;
}

const TEMPLATE = 'it is a template that is not rendered (“{{”): give the output of helm template or the like';

function* jobsOf(text: string): Generator<Found, void, void> {
  const lines = new LineCounter();
  const lineAt = (offset: number) => lines.linePos(offset).line;
  for (const document of [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })]) {
    for (const { offset, broken } of faultsOf(document, text)) yield { line: lineAt(offset), job: null, broken };
    if (document.errors.length > 0 || document.contents === null) continue;
    const root: unknown = document.toJS({ maxAliasCount: 1000 });
    if (root === null) continue;
    const list = isMap(document.contents) ? document.contents.get('items') : null;
    if (!isSeq(list) || !isObject(root)) yield { line: lineAt(document.contents.range[0]), job: root };
    else
      yield* itemsOf(
        root,
        list.items.map((item) => lineAt(offsetOf(item) ?? 0)),
      );
  }
}

/** One alone where it is a template, of which the reader understands little. */
function faultsOf({ errors, range: [from, , to] }: Document.Parsed, text: string) {
  const brace = errors.length === 0 ? -1 : text.slice(from, to).indexOf('{{');
  if (brace >= 0) return [{ offset: from + brace, broken: TEMPLATE }];
  return errors.map(({ message, pos }) => ({ offset: pos[0], broken: message }));
}

/** What a CronJobList has says no kind of its own. */
function* itemsOf({ kind, items }: Record<string, unknown>, lines: readonly number[]): Generator<Found, void, void> {
  const given = kind === 'CronJobList' ? { kind: 'CronJob' } : {};
  for (const [index, line] of lines.entries()) {
    const item = (items as unknown[])[index];
    yield { line, job: isObject(item) ? { ...given, ...item } : item };
  }
}

const OVERLAPS: Readonly<Record<string, string>> = { Allow: 'allow', Forbid: 'skip', Replace: 'replace' };
const HISTORY_LIMITS = ['successfulJobsHistoryLimit', 'failedJobsHistoryLimit'];

function scheduleOf(job: unknown, { timezone: standard, target }: ImportOptions) {
  const { what, name, namespace, metadata, spec } = cronJobOf(job);
  const jobTemplate = objectOf(spec['jobTemplate'], `${what}: jobTemplate`);
  const template = objectOf(jobTemplate['spec'], `${what}: its job`);
  const { schedule, timeZone, suspend, concurrencyPolicy = 'Allow', startingDeadlineSeconds: deadline } = spec;
  const overlap = OVERLAPS[String(concurrencyPolicy)];
  if (typeof schedule !== 'string') throw new NotCarriedOver(`${what} has no schedule`);
  if (overlap === undefined) throw new NotCarriedOver(`${what}: concurrencyPolicy is ${String(concurrencyPolicy)}`);
  const zone = typeof timeZone === 'string' ? timeZone : null;
  const { labels, lost } = labelsOf(metadata);
  const fields = {
    id: `${namespace}.${name}`,
    ...kubernetesTimes(schedule, { timeZone: zone, standard }),
    ...(suspend === true ? { enabled: false } : {}),
    overlap,
    // Without a deadline, Kubernetes makes up for missed starts once.
    ...(typeof deadline === 'number' ? byDeadline(deadline) : { catchUp: 'latest' }),
    retry: retryOf(template, what),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    target,
    // The attempts are those of the run: the Job has one.
    payload: { namespace, name, job: { ...template, backoffLimit: 0 } },
  };
  checkFields(fields);
  const dropped = HISTORY_LIMITS.filter((one) => spec[one] !== undefined);
  const notes = [
    ...dropped.map((one) => `${one} has no meaning here: history is kept by days`),
    ...(lost.length === 0 ? [] : [`not carried over from its metadata: ${lost.join(', ')}`]),
    ...(isObject(jobTemplate['metadata']) ? ['the metadata of its jobTemplate are not carried over'] : []),
  ];
  return { fields, notes: notes.map((note) => `${what}: ${note}`) };
}

/** No Job is started later than that: neither one that was missed, nor one that no worker claimed in time. */
function byDeadline(seconds: number): Record<string, unknown> {
  const bounded = { graceSeconds: seconds, catchUp: 'skip' };
  return seconds < 1 ? bounded : { ...bounded, expiresAfterSeconds: seconds };
}

/** Labels that firelock takes as they are; annotations have no place here. */
function labelsOf({ labels: given, annotations }: Record<string, unknown>) {
  const labels: Record<string, unknown> = {};
  const lost = isObject(annotations) ? Object.keys(annotations).map((key) => `annotation ${key}`) : [];
  for (const [key, value] of Object.entries(isObject(given) ? given : {})) {
    const isTaken = scheduleInput.shape.labels.safeParse({ ...labels, [key]: value }).success;
    if (isTaken) labels[key] = value;
    else lost.push(`label ${key}`);
  }
  return { labels, lost };
}

function cronJobOf(job: unknown) {
  const { kind, metadata: given, spec } = objectOf(job, 'the document');
  const metadata = withoutNulls(objectOf(given, 'metadata'));
  const { name, namespace = 'default' } = metadata;
  if (typeof name !== 'string') throw new NotCarriedOver('it has no name');
  const what = `${String(kind)} ${name}`;
  if (kind !== 'CronJob') throw new NotCarriedOver(`${what} is not a CronJob`);
  return {
    what,
    name,
    namespace: String(namespace),
    metadata,
    spec: withoutNulls(objectOf(spec, `${what}: spec`)),
  };
}

/** Kubernetes takes null for absent. */
function withoutNulls(object: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}

/** Kubernetes waits 10 s, twice as long each time, and 6 minutes at most. */
function retryOf({ backoffLimit }: Record<string, unknown>, what: string) {
  const limit = Number(backoffLimit ?? 6);
  if (!Number.isInteger(limit) || limit < 0 || limit > 99)
    throw new NotCarriedOver(`${what}: backoffLimit is ${String(backoffLimit)}; firelock makes at most 100 attempts`);
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
  if (schedule.includes('{{')) throw new NotCarriedOver(TEMPLATE);
  const [, named, rest = schedule] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/s.exec(schedule) ?? [];
  const [, duration] = /^@every\s+(\S+)$/.exec(rest.trim()) ?? [];
  if (duration !== undefined) return { everySeconds: wholeSeconds(duration) };
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

function wholeSeconds(duration: string): number {
  const seconds = secondsOf(duration);
  if (seconds === null) throw new NotCarriedOver(`@every ${duration} is not a number of whole seconds`);
  return seconds;
}
