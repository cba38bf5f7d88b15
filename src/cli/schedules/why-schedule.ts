import type { Command } from 'commander';
import { dayRulesInWords } from '../../core/describe/describe-days.ts';
import { INSTANT, type Period, periodOf } from '../common/arguments.ts';
import { type Cli, withExamples } from '../cli.ts';
import type {
  OccurrenceAnswer,
  Page,
  RunAnswer,
  ScheduleAnswer,
  InstanceAnswer,
  ScheduleVersionAnswer,
} from '../server/answers.ts';
import { type ListOptions, listOptions, moreNote, readPages } from '../server/list-pages.ts';
import { type Server, pathOf } from '../server/server-calls.ts';
import { runText } from '../runs/run-text.ts';
import type { View } from '../terminal/output.ts';
import { paintStatus, printable } from '../terminal/shown-text.ts';
import { triggerText } from './show-schedules.ts';
import { nobodyUp } from '../../core/time/nobody-up.ts';

type Options = ListOptions & Period;

export function addWhySchedule(parent: Command, cli: Cli): void {
  const command = parent
    .command('why <id>')
    .description('what became of each fire of a period, and why')
    .option('--from <instant>', `inclusive: ${INSTANT}`, '-1d')
    .option('--to <instant>', 'exclusive', 'now')
    .action(async (id: string, { from, to, ...pages }: Options) => {
      const period = periodOf({ from, to }, cli.surroundings);
      const explained = await explain(cli.server(), id, { period, pages });
      const { occurrences, otherRuns, nextCursor, schedule, plannedThrough } = explained;
      cli
        .output()
        .show({ schedule, items: occurrences, otherRuns, nextCursor, plannedThrough }, (view) => [
          ...explanationLines(explained, view),
          ...moreNote(explained),
        ]);
    });
  withExamples(
    listOptions(command),
    'firelock schedule why invoices',
    'firelock schedule why invoices --from 2030-01-31T00:00:00Z --to 2030-02-01T00:00:00Z',
  );
}

interface Explained {
  schedule: ScheduleAnswer;
  besides: WhyBesides;
  period: ReturnType<typeof periodOf>;
  /** The occurrences, each with its run if that lies in the period. */
  occurrences: (OccurrenceAnswer & { run: RunAnswer | null })[];
  /** Runs that belong to no occurrence: manual ones, for example. */
  otherRuns: RunAnswer[];
  nextCursor: string | null;
  /** No fire up to then is planned any more: the clock of the database was ahead. Null: it was not. */
  plannedThrough: string | null;
}

interface OccurrencesFound extends Page<OccurrenceAnswer> {
  plannedThrough?: string;
}

/** Reads the schedule, its occurrences, and the runs of the period that these cover. */
async function explain(
  server: Server,
  id: string,
  { period, pages }: Pick<Explained, 'period'> & { pages: ListOptions },
): Promise<Explained> {
  const schedule = (await server.call('GET', pathOf('schedules', id))).body() as ScheduleAnswer;
  const path = pathOf('schedules', id, 'occurrences');
  const found: OccurrencesFound = schedule.after
    ? { items: [], nextCursor: null }
    : await readPages<OccurrenceAnswer, OccurrencesFound>(server, path, period, pages);
  const isWhole = found.nextCursor === null;
  const last = found.items.at(-1)?.fireAt;
  const stretch = isWhole || last === undefined ? period : { from: period.from, to: justAfter(last) };
  const runsPath = pathOf('schedules', id, 'runs');
  const runs = await readPages<RunAnswer>(server, runsPath, stretch, { all: true });
  const byId = new Map(runs.items.map((run) => [run.id, run]));
  const occurrences = found.items.map((occurrence) => ({
    ...occurrence,
    run: byId.get(occurrence.runId ?? '') ?? null,
  }));
  const explained = new Set(found.items.map(({ runId }) => runId));
  const otherRuns = runs.items.filter((run) => !explained.has(run.id)).reverse();
  const { nextCursor, plannedThrough = null } = found;
  const isPaused = schedule.status === 'paused' || found.items.some(({ state }) => state === 'paused');
  const isMissed = found.items.some(({ state }) => state === 'missed');
  const besides = await whyBesides(server, id, { paused: isPaused, missed: isMissed });
  return { schedule, besides, period, occurrences, otherRuns, nextCursor, plannedThrough };
}

/** Instants are whole milliseconds. */
function justAfter(instant: string): string {
  return new Date(Date.parse(instant) + 1).toISOString();
}

/** What happened to each fire, in words; then the runs that no schedule planned. */
function explanationLines(explained: Explained, view: View): string[] {
  const { occurrences, otherRuns, plannedThrough } = explained;
  return [
    standing(explained, view),
    ...(plannedThrough === null ? [] : [aheadLine(plannedThrough, view)]),
    ...(occurrences.length > 0 ? occurrenceLines(explained, view) : noneLines(explained, view)),
    ...(otherRuns.length > 0 ? otherRunLines(otherRuns, view) : []),
    view.zones,
  ];
}

function aheadLine(plannedThrough: string, view: View): string {
  return (
    `no fire up to ${view.time(plannedThrough)} is planned any more: the clock of the database was ahead when the schedule was ` +
    'planned or written last; firelock resume --from-now sets it back'
  );
}

/** Sentences, not a table: a user reads them as a whole. */
function occurrenceLines({ occurrences, besides }: Explained, view: View): string[] {
  return occurrences.map((occurrence) => {
    const { fireAt, state, runId } = occurrence;
    const words = printable(occurrenceText(occurrence, besides, view));
    const run = runId === undefined ? '' : ` (run ${runId})`;
    return `${view.time(fireAt)}  ${paintStatus(state, view.paint)}: ${words}${movedText(occurrence)}${run}`;
  });
}

function movedText({ movedFrom, movedTo }: OccurrenceAnswer): string {
  if (movedFrom !== undefined) return `, for ${movedFrom}`;
  return movedTo === undefined ? '' : `; its fires are those of ${movedTo}`;
}

/** A schedule that follows another one has no fire times of its own. */
function noneLines({ schedule, period: { from, to } }: Explained, view: View): string[] {
  return schedule.after ? [] : [`no fire was due between ${view.time(from)} and ${view.time(to)}`];
}

function otherRunLines(runs: readonly RunAnswer[], view: View): string[] {
  return [
    'runs that belong to none of its fire times:',
    ...runs.map((run) => {
      const words = printable(runText(run, view));
      return `${view.time(run.scheduledFor)}  ${run.trigger}: ${words} (run ${run.id})`;
    }),
  ];
}

function standing({ schedule, besides }: Explained, view: View): string {
  const { id, status, error, pauseReason, pauseUntil, nextFireAt, late, timezone } = schedule;
  const zone = timezone === null ? '' : ` (${timezone})`;
  const paused = status === 'paused' ? pauseText(besides, schedule.version, view) : null;
  const parts = [
    `${id} fires ${triggerText(schedule)}${dayRulesInWords(schedule)}${zone} and is ${status}${paused === null ? '' : ` ${paused}`}`,
    pauseReason === null || paused !== null ? null : `because: ${pauseReason}`,
    pauseUntil === null ? null : `until ${view.time(pauseUntil)}`,
    error === null ? null : `because: ${error}`,
    schedule.observe === null ? null : 'another scheduler runs its job, which reports',
    late ? 'it is late: no run has succeeded for too long' : null,
    nextFireAt === null ? null : `next fire ${view.time(nextFireAt)}`,
  ];
  return printable(parts.filter((part) => part !== null).join('; '));
}

function occurrenceText(
  { state, reason, run, fireAt, version }: Explained['occurrences'][number],
  besides: WhyBesides,
  view: View,
): string {
  const became = run === null ? null : runText(run, view);
  const usual = WORDS[`${state} ${reason ?? ''}`.trim()] ?? WORDS[state] ?? '';
  const paused = state === 'paused' ? pauseText(besides, version, view) : null;
  const nobody = state === 'missed' ? nobodyUpText(besides, fireAt, view) : null;
  const why = paused === null ? usual.replace(NOT_IN_TIME, nobody ?? NOT_IN_TIME) : `${usual} ${paused}`;
  const words = state === 'excluded' ? `its day is excluded by ${reason ?? 'its exclude'}` : why;
  if (state === 'fired') return became ?? 'its run is older than the retention';
  if (run?.status === 'skipped' && run.error !== null) return `${words}: ${run.error.message}`;
  const isHandedOff = became !== null && run?.status !== 'skipped';
  return isHandedOff ? `${words}; its record: ${became}` : words;
}

const NOT_IN_TIME = 'no instance could plan it in time';

/** By state, and by state and reason. */
const WORDS: Readonly<Record<string, string>> = {
  missed: 'it was too late when it was planned',
  'missed latest': `${NOT_IN_TIME}; catchUp "latest" makes one run for the whole outage`,
  'missed skip': `${NOT_IN_TIME}; catchUp "skip" makes no run afterwards`,
  'missed limit': `${NOT_IN_TIME}, and there were more than catchUpLimit`,
  'missed retention': 'it is older than the retention',
  'missed clock': 'it counts as planned already, since the clock of the database was ahead',
  'missed unknown': 'no record explains it',
  skipped: 'it was skipped',
  'skipped overlap': 'an earlier run was still active, and overlap is "skip"',
  'skipped request': 'a caller asked to skip it',
  'skipped expired': 'it had not begun within expiresAfterSeconds',
  paused: 'the schedule was paused',
  upcoming: 'it is still to come',
  'upcoming error': 'it is still to come, but the schedule cannot be planned at present',
};

/** What explains an occurrence beside its run. */
interface WhyBesides {
  /** Newest first. */
  versions: readonly ScheduleVersionAnswer[];
  /** Those of the last day; none where the caller may not see them. */
  instances: readonly InstanceAnswer[];
}

const NEWEST = 100;

/** Asks for no more than is to be explained. @throws CliError */
async function whyBesides(
  server: Server,
  id: string,
  { paused, missed }: { paused: boolean; missed: boolean },
): Promise<WhyBesides> {
  const path = pathOf('schedules', id, 'versions');
  const versions = paused ? await server.call('GET', path, { query: { limit: NEWEST } }) : null;
  const instances = missed ? await server.ask('GET', 'instances') : null;
  return {
    versions: versions === null ? [] : (versions.body() as Page<ScheduleVersionAnswer>).items,
    instances: instances?.status === 200 ? (instances.body() as { items: InstanceAnswer[] }).items : [],
  };
}

/** Who paused it by the version that was in force, when and why; null: that is longer ago than versions were read. */
function pauseText({ versions }: WhyBesides, version: number, view: View): string | null {
  const older = versions.filter((one) => one.version <= version);
  const before = older.findIndex(({ schedule }) => schedule.enabled);
  const begin = older.at(before === -1 ? older.length - 1 : before - 1);
  if (begin === undefined || begin.schedule.enabled) return null;
  const { at, by, schedule } = begin;
  const reason = schedule.pauseReason === null ? '' : `: ${schedule.pauseReason}`;
  return `since ${view.time(at)}, by ${by ?? 'a caller without a token'}${reason}`;
}

/** While no instance was up around that moment; null: one was, or it is not known. */
function nobodyUpText({ instances }: WhyBesides, fireAt: string, view: View): string | null {
  const gap = nobodyUp(instances, fireAt);
  return gap && `no instance was up from ${view.time(gap.from)} to ${view.time(gap.to)}`;
}
