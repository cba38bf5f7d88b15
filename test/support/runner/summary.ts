import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';
import { LONG } from './long.ts';

/** What became of the tests of a run that were not run. */
interface LeftOut {
  /** Those that wait for `npm run test:long`. */
  long: number;
  /** Those that cannot run here: why not, in each one's own words. */
  skipped: { name: string; reason: string }[];
}

/** How many of the slowest files a summary names. */
const SLOWEST = 20;

/** Says at the end of a run how long it took, which files took longest, and what was left out and why. */
export class Summary implements Reporter {
  private vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const { testNamePattern, tagsFilter } = this.vitest?.config ?? {};
    const isAsked = (test: TestCase) => testNamePattern === undefined && passes(test, tagsFilter);
    const tests = modules.flatMap((module) => [...module.children.allTests('skipped')]);
    const leftOut: LeftOut = { long: 0, skipped: [] };
    for (const test of tests) {
      const result = test.result();
      const note = result.state === 'skipped' ? result.note : undefined;
      if (note !== undefined || isAsked(test)) {
        const name = `${test.module.relativeModuleId} > ${test.fullName}`;
        leftOut.skipped.push({ name, reason: note ?? 'it gives no reason' });
      } else if (test.tags.includes(LONG) && tagsFilter?.includes(`!${LONG}`) === true) leftOut.long += 1;
    }
    const files = modules.map((module) => {
      const { collectDuration, duration } = module.diagnostic();
      return { name: module.relativeModuleId, seconds: (collectDuration + duration) / 1000 };
    });
    console.log(`\n${slowestOf(files)}`);
    // By the process's own clock: what came before the first test is part of it.
    console.log(`\n${summaryOf(performance.now() / 1000, leftOut)}\n`);
  }
}

// Named in the configuration or on the command line, a reporter is its file's default export.
export default Summary;

/** In plain words. */
export function summaryOf(seconds: number, { long, skipped }: LeftOut): string {
  return [
    `Took ${durationOf(seconds)}.`,
    ...(long > 0 ? [`Left to \`npm run test:long\`: ${testsOf(long)}.`] : []),
    skipped.length > 0 ? `Skipped ${testsOf(skipped.length)}:` : `Skipped nothing${long > 0 ? ' else' : ''}.`,
    ...skipped.map(({ name, reason }) => `- ${name}: ${reason}`),
  ].join('\n');
}

/** The slowest files, a line each, the slowest first. Files that run at once share the cores, so these seconds add up to more than the run took. */
export function slowestOf(files: readonly { name: string; seconds: number }[]): string {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  return [
    `The ${slowest.length} slowest of ${files.length} files, in seconds:`,
    ...slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(6)}  ${name}`),
  ].join('\n');
}

/** Of the filters that scripts name: the tests of one tag, or all others. */
function passes({ tags }: TestCase, tagsFilter: string[] = []): boolean {
  return tagsFilter.every((filter) =>
    filter.startsWith('!') ? !tags.includes(filter.slice(1)) : tags.includes(filter),
  );
}

function durationOf(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function testsOf(count: number): string {
  return count === 1 ? '1 test' : `${count} tests`;
}
