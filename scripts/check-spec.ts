/**
 * Searches the protocol's models in spec/ exhaustively, and the same models with a guard taken out, each of which has to
 * break the property that the guard is for. spec/README.md tells what they say. Needs spin and gcc; exits 2 without.
 *
 *     node scripts/check-spec.ts [--report=FILE]     FILE gets {"passed": N, "failed": M}
 *         [--quick]                                  only what is searched in seconds
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

type Model = 'plan' | 'handoff' | 'dependents' | 'leases';

interface Check {
  readonly kind: 'model' | 'ends' | 'spare' | 'reach' | 'mutant';
  readonly model: Model;
  readonly defines: readonly string[];
  /** The property that has to break; none: everything has to hold, over all states. */
  readonly breaks?: string;
  /** It has more than a million states. */
  readonly isLarge?: true;
}

interface Search {
  readonly states: number;
  readonly depth: number;
  readonly megabytes: number;
  /** Every state was visited. */
  readonly exhausted: boolean;
  /** The property that a state or cycle was found to break. */
  readonly broken: string | undefined;
  readonly output: string;
}

interface Finished {
  readonly output: string;
  readonly failure: string | undefined;
}

const root = join(import.meta.dirname, '..');
const ONCE = 'AT_MOST_ONCE';
const ON_FAILURE_RUN = 'ON_FAILURE_RUN';
const WORKERS = 2;
const MEMORY_LIMIT_MB = 950;
/** For what hangs: the largest takes a minute and a half on a quiet machine. */
const TIME_LIMIT_MS = 3_600_000;

/** The largest first: two are searched at a time. */
const checks: readonly Check[] = [
  ...large(
    ...holding('model', 'handoff', [
      ['N=3', 'CRASHES=2'],
      ['N=2', 'CRASHES=2', 'LOST=2'],
    ]),
    ...holding('model', 'plan', [['N=3', 'LOST=1', 'BACKFILLS=0'], ['N=2']]),
    ...holding('model', 'handoff', [
      [ONCE, 'N=3', 'CRASHES=2'],
      [ONCE, 'N=2', 'CRASHES=2', 'LOST=2'],
    ]),
    ...holding('model', 'dependents', [
      ['N=3', 'RETRIES=2', 'PAIR'],
      ['N=3', 'RETRIES=2'],
    ]),
    // Where two guards do the same work, each may go, but not both.
    ...holding('spare', 'plan', [
      ['NO_LOCK_GUARD', 'CURSOR_MAY_GO_BACK', 'LOST=1'],
      ['NO_LOCK_OWNER', 'LOST=1'],
      ['NO_VERSION_GUARD', 'LOST=1'],
      ['EDIT_KEEPS_LOCK', 'LOST=1'],
    ]),
  ),
  ...holding('model', 'dependents', [
    ['N=3', ON_FAILURE_RUN],
    ['N=3', ON_FAILURE_RUN, 'PAIR'],
    ['BOUNDED', 'N=3'],
    ['BOUNDED', 'CRASHES=0'],
    ['BOUNDED', 'PAIR', ON_FAILURE_RUN],
    ['BACKSTOP', 'N=3'],
  ]),
  ...holding('model', 'leases', [['LEASE=3', 'HEARTBEATS=3', 'CRASHES=2']]),
  ...holding('ends', 'plan', [['LOST=1', 'BACKFILLS=0']]),
  ...holding('ends', 'handoff', [[], [ONCE]]),
  ...holding('ends', 'dependents', [['CRASHES=2'], ['CRASHES=1', 'PAIR']]),
  ...holding('ends', 'leases', [[]]),
  ...holding('spare', 'plan', [['NO_UNIQUE', 'BACKFILLS=0']]),
  ...holding('spare', 'handoff', [['NO_CLOCKS'], [ONCE, 'NO_CLOCKS']]),
  ...holding('spare', 'dependents', [
    ['EFFECT_APART', 'BACKSTOP', 'RETRIES=0'],
    ['EFFECT_DELETED', 'BACKSTOP', 'RETRIES=0'],
  ]),
  ...holding('spare', 'leases', [['NO_WORKER_GUARD']]),
  // That all of it happens: each of these is found in a state where nothing more can.
  ...reaching('handoff', ['SUCCEEDED'], ['FAILED'], ['ABANDONED'], ['UNKNOWN', ONCE], ['ABANDONED', ONCE]),
  ...reaching('dependents', ['RAN_IN_TURN'], ['FAILED_IN_TURN'], ['RAN_AFTER_A_RETRY']),
  ...reaching('leases', ['SUCCEEDED'], ['UNKNOWN']),
  ...breaking('plan', {
    double_plan: [['NO_UNIQUE'], ['NO_UNIQUE', 'NO_LOCK_GUARD', 'BACKFILLS=0']],
    phantom_fire: [['EDIT_LOOKS_BACK']],
    cursor_back: [['NO_LOCK_GUARD'], ['NO_LOCK_TIME']],
    lost_fire: [
      ['NO_VERSION_GUARD', 'EDIT_KEEPS_LOCK', 'CURSOR_MAY_GO_BACK', 'BACKFILLS=0'],
      ['ADVANCE_FIRST'],
      ['EDIT_DROPS_DUE'],
      ['EDIT_READS_FIRST'],
    ],
    stuck: [['LOCK_FOREVER']],
  }),
  ...breaking('handoff', {
    stale_settle: [['NO_CLAIM_GUARD'], ['NO_ATTEMPT_GUARD'], ['NO_FENCING_TOKEN'], [ONCE, 'NO_FENCING_TOKEN']],
    terminal_changes: [['NO_PENDING_GUARD'], [ONCE, 'NO_PENDING_GUARD']],
    accepted_ignored: [['NO_ACCEPTED_EXCEPTION']],
    not_accepted: [['DOUBT_IS_ACCEPTED']],
    dead_sender: [['NO_LEASE_CHECK'], ['CHECK_IGNORES_IDENTITY'], ['NO_LEASE_MARGIN']],
    unexplained_repeat: [['EAGER_RECONCILIATION'], ['NO_NEW_IDENTITY'], ['SHARED_IDENTITY']],
    stuck: [['NO_SELF_RECONCILIATION'], ['DEATH_AS_EVENT'], [ONCE, 'NO_SELF_RECONCILIATION'], [ONCE, 'DEATH_AS_EVENT']],
    sent_twice: [
      [ONCE, 'NO_STARTED_COMMIT'],
      [ONCE, 'START_UNGUARDED'],
      [ONCE, 'NO_CLAIM_GUARD', 'ONLY_SENDS'],
      [ONCE, 'UNKNOWN_COMMIT_COUNTS'],
      [ONCE, 'AT_MOST_ONCE_RESENDS'],
      [ONCE, 'AT_MOST_ONCE_RETRIES'],
    ],
    needless_unknown: [
      [ONCE, 'STARTED_STAYS'],
      [ONCE, 'NO_ATTEMPT_GUARD'],
    ],
  }),
  ...breaking('dependents', {
    stuck: [
      ['COUNTS_FROM_SNAPSHOT'],
      ['MARK_FROM_SNAPSHOT'],
      ['EFFECT_APART'],
      ['EFFECT_DELETED'],
      ['EFFECT_DELETED_FIRST'],
      ['BOUNDED', 'CUT_IS_DONE'],
      ['CREATOR_DOES_NOT_LOCK'],
      ['CREATOR_DOES_NOT_MARK'],
      ['MARKS_WHAT_WAS_OPEN'],
      ['READS_FIRST'],
      ['FAILS_FROM_MEMORY'],
      ['LOCKS_BACKWARDS', 'CRASHES=0'],
    ],
    released_twice: [['SIBLINGS']],
    below_zero: [['NO_EDGE_MARK']],
    early: [['RETRY_STARTS']],
    wrong_end: [['COUNTS_WHAT_IS_OPEN'], ['OLDER_END_COUNTS'], ['EFFECT_APART', 'BACKSTOP']],
  }),
  ...breaking('leases', {
    two_leases: [['EXPIRES_UNSEEN'], ['TAKES_BACK_ANY_ATTEMPT'], ['CLAIM_UNCHECKED', 'ONLY_LEASES']],
    stale_word: [['NO_ATTEMPT_GUARD'], ['NO_FENCING_TOKEN', 'ONLY_LEASES']],
    failures_lost: [['EXPIRES_ANY_ATTEMPT']],
    terminal_changes: [['NO_STATUS_GUARD']],
    stuck: [['NO_EXPIRY']],
  }),
];

const { report, quick } = parseArgs({
  options: { report: { type: 'string' }, quick: { type: 'boolean', default: false } },
}).values;
const chosen = quick ? checks.filter(({ isLarge }) => isLarge !== true) : checks;
process.exitCode = (await toolsAreThere()) ? await runChecks() : 2;

async function toolsAreThere(): Promise<boolean> {
  const tools = await Promise.all([run('spin', ['-V'], root), run('gcc', ['--version'], root)]);
  if (tools.every((tool) => tool.failure === undefined)) return true;
  console.error('check-spec needs spin and gcc. On Debian: apt-get install spin gcc libc6-dev');
  return false;
}

async function runChecks(): Promise<number> {
  const startedAt = performance.now();
  const waiting = [...chosen];
  let passed = 0;
  const workers = Array.from({ length: WORKERS }, async () => {
    for (let check = waiting.shift(); check; check = waiting.shift()) {
      if (await passes(check)) passed += 1;
    }
  });
  await Promise.all(workers);
  const failed = chosen.length - passed;
  console.log(`spec: ${passed} passed, ${failed} failed, ${seconds(startedAt)} s`);
  if (report !== undefined) writeFileSync(report, JSON.stringify({ passed, failed }));
  return failed > 0 ? 1 : 0;
}

async function passes(check: Check): Promise<boolean> {
  const startedAt = performance.now();
  const found = await search(check);
  const ok = check.breaks === undefined ? found.exhausted : found.broken === check.breaks;
  const result = found.broken ? `breaks ${found.broken}` : found.exhausted ? 'holds' : 'not searched to the end';
  const name = `${check.kind.padEnd(6)} ${check.model} ${check.defines.join(' ')}`;
  const size = `${found.states} states, depth ${found.depth}, ${seconds(startedAt)} s, ${found.megabytes} MB`;
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}: ${result} (${size})`);
  if (!ok) console.log(`       expected: ${check.breaks ? `breaks ${check.breaks}` : 'holds'}\n${found.output}`);
  return ok;
}

async function search(check: Check): Promise<Search> {
  const scratch = mkdtempSync(join(tmpdir(), 'firelock-spec-'));
  try {
    const defines = check.defines.map((define) => `-D${define}`);
    const generated = await run('spin', ['-a', ...defines, join(root, 'spec', `${check.model}.pml`)], scratch);
    if (generated.failure !== undefined) return unsearched(generated);
    const property = check.kind === 'ends' ? '-DNP' : '-DSAFETY';
    // No reduction: every step touches what all share. No bit state or hash compaction: they may miss states.
    const options = [optimization(check), '-DNOREDUCE', `-DMEMLIM=${MEMORY_LIMIT_MB}`, property];
    const compiled = await run('gcc', [...options, '-o', 'pan', 'pan.c'], scratch);
    if (compiled.failure !== undefined) return unsearched(compiled);
    const cycles = check.kind === 'ends' ? ['-l'] : [];
    return read(await run(join(scratch, 'pan'), ['-n', '-m20000', '-w20', ...cycles], scratch));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** What breaks does so soon: compiling well would take longer than searching. */
function optimization({ breaks }: Check): string {
  return breaks === undefined ? '-O2' : '-O0';
}

/** pan exits 0 also where it gave up, so its words decide. */
function read({ output, failure }: Finished): Search {
  const complete =
    failure === undefined &&
    /^Full statespace search/m.test(output) &&
    /errors: 0$/m.test(output) &&
    !/Search not completed|search depth too small|out of memory|exceeds memory limit/i.test(output);
  const violated = /^pan:\d+: assertion violated .*?(\w+)\)+ \(at depth/m.exec(output)?.[1];
  const cycle = /^pan:\d+: non-progress cycle/m.test(output) ? 'termination' : undefined;
  const other = /^pan:\d+: (.*?) \(at depth/m.exec(output)?.[1];
  return {
    states: numberIn(output, /^\s*(\d+) states, stored/m),
    depth: numberIn(output, /depth reached (\d+)/),
    megabytes: Math.round(numberIn(output, /([\d.]+)\s+total actual memory usage/)),
    exhausted: complete,
    broken: violated ?? cycle ?? other,
    output: failure === undefined ? output : `${output}\n${failure}`,
  };
}

function unsearched({ output, failure }: Finished): Search {
  const said = `${output}\n${failure ?? ''}`;
  return { states: 0, depth: 0, megabytes: 0, exhausted: false, broken: undefined, output: said };
}

function run(command: string, args: readonly string[], cwd: string): Promise<Finished> {
  return new Promise((resolve) => {
    const options = { cwd, encoding: 'utf8', timeout: TIME_LIMIT_MS, maxBuffer: 2 ** 24 } as const;
    execFile(command, [...args], options, (error, stdout, stderr) => {
      resolve({ output: `${stdout}${stderr}`.trim(), failure: error?.message });
    });
  });
}

function large(...some: readonly Check[]): Check[] {
  return some.map((check) => ({ ...check, isLarge: true }));
}

function holding(kind: Check['kind'], model: Model, variants: readonly (readonly string[])[]): Check[] {
  return variants.map((defines) => ({ kind, model, defines }));
}

function breaking(model: Model, byProperty: Readonly<Record<string, readonly (readonly string[])[]>>): Check[] {
  return Object.entries(byProperty).flatMap(([breaks, variants]) =>
    variants.map((defines): Check => ({ kind: 'mutant', model, defines, breaks })),
  );
}

function reaching(model: Model, ...ends: readonly (readonly [end: string, ...defines: string[]])[]): Check[] {
  return ends.map(([end, ...defines]) => ({
    kind: 'reach',
    model,
    defines: [...defines, `NEVER=${end}`],
    breaks: 'never_ends_so',
  }));
}

function numberIn(output: string, pattern: RegExp): number {
  return Number(pattern.exec(output)?.[1] ?? 0);
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}
