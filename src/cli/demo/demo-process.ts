/**
 * The demo's own process: PostgreSQL, the instances and their directory are its own, and it removes them when the command is gone. A
 * terminal's Ctrl-C does not reach it.
 */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../local-postgres/embedded-postgres.ts';
import { systemClock } from '../../runtime/clock.ts';
import { reasonOf } from '../../runtime/reason.ts';
import { EXIT } from '../exit-codes.ts';
import { type DemoOptions, DemoStory } from './demo-story.ts';

const NO_POSTGRES = 'the embedded PostgreSQL does not start, and the demo uses no other';

const gone = new AbortController();
const leave = () => gone.abort();
process.once('disconnect', leave);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, leave);
// Once the command is gone, nobody reads.
for (const stream of [process.stdout, process.stderr]) stream.on('error', leave);
// It may be gone already: what listens here was loaded meanwhile.
if (!process.connected) leave();
process.exitCode = await run(JSON.parse(process.argv[2] ?? '') as DemoOptions);
if (process.connected) process.disconnect();

async function run(options: DemoOptions): Promise<number> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'firelock-demo-')));
  // Started by root, PostgreSQL runs as another user, who has to get in.
  await chmod(directory, 0o755);
  let story: DemoStory | null = null;
  let stopPostgres = () => Promise.resolve();
  try {
    const starting = startEmbeddedPostgres({
      ...{ dataDir: directory, clock: systemClock, onEvent: () => undefined },
    });
    const postgres = await starting.catch((error: unknown) => {
      throw new Error(`${NO_POSTGRES}: ${reasonOf(error)}`);
    });
    stopPostgres = () => postgres.stop();
    const { signal } = gone;
    story = new DemoStory({ options, databaseUrl: postgres.url, clock: systemClock, signal });
    story.say(postgres.whatRuns);
    return (await story.play()) ? EXIT.done : EXIT.failed;
  } catch (error) {
    if (gone.signal.aborted) return EXIT.interrupted;
    process.stderr.write(`firelock: ${reasonOf(error)}\n`);
    return EXIT.failed;
  } finally {
    await story?.close();
    await stopPostgres();
    // As root it may be a link to where PostgreSQL's user can enter.
    const home = await realpath(join(directory, 'postgres')).catch(() => directory);
    for (const path of [home, directory]) await rm(path, { recursive: true, force: true, maxRetries: 10 });
  }
}
