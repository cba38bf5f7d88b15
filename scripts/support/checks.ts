import { writeFileSync } from 'node:fs';

type Undo = () => Promise<void> | void;
export type Check<Stage> = readonly [sentence: string, check: (stage: Stage) => Promise<void> | void];

interface Options<Stage> {
  name: string;
  /** In this order: each stands on those before it, so the first one that fails is the last one made. */
  checks: readonly Check<Stage>[];
  /** What it adds to `cleanup` is done in the end, the last first. */
  setStage: (cleanup: Undo[]) => Promise<Stage>;
  /** What the programs of the stage have written, for who has to find out why a check failed. */
  wrote: (stage: Stage) => string;
  /** A file that gets {"passed": N, "failed": M}. */
  report: string | undefined;
}

/** Sets the exit code of the process. */
export async function runChecks<Stage>(options: Options<Stage>): Promise<void> {
  const { name, report } = options;
  const tally = await passAll(options);
  console.log(`${name}: ${tally.passed} passed, ${tally.failed} failed`);
  if (report !== undefined) writeFileSync(report, JSON.stringify(tally));
  if (tally.failed > 0) process.exitCode = 1;
}

async function passAll<Stage>({ checks, setStage, wrote }: Options<Stage>) {
  const cleanup: Undo[] = [];
  let stage: Stage | undefined;
  let passed = 0;
  let current = 'the stage is set';
  try {
    stage = await setStage(cleanup);
    for (const [sentence, check] of checks) {
      current = sentence;
      await check(stage);
      console.log(`ok   ${sentence}`);
      passed += 1;
    }
    return { passed, failed: 0 };
  } catch (error) {
    console.error(`FAIL ${current}`, error);
    console.error(`The programs wrote:\n${stage === undefined ? 'nothing' : wrote(stage)}`);
    return { passed, failed: 1 };
  } finally {
    for (const undo of cleanup.reverse()) await undo();
  }
}
