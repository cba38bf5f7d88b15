// @module-tag long
import { expect, onTestFinished, test } from 'vitest';
import { createMigratedDatabase } from '../support/postgres/migrated-database.ts';
import { type DaemonHere, daemonHere } from '../support/daemon-here.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/runner/long.ts';
import { askedBy, blocksOf, kindOf, placeOf, shellBlocksOf } from './blocks.ts';
import { expectAnswer } from './expect-answer.ts';
import { type Said, runPage } from './shell.ts';

/** Of what quickstart.md shows. */
const LOOSE = ['id', 'latenessMs'];

test('what the README and the quick start say fires, and says why it does not', async () => {
  await onDaemon(async (daemon) => {
    await runPage('README.md', {
      url: daemon.url,
      meanwhile: (said, terminal) => firesAsTheReadmeSays(daemon, said, terminal),
    });
    await runPage('docs/quickstart.md', {
      url: daemon.url,
      meanwhile: (said) => answersAsThePageSays(daemon, 'docs/quickstart.md', said),
    });
  });
});

// What each program does is tested beside, quickly: test/examples.
test('the commands of examples/README.md end well', { tags: [LONG] }, async () => {
  await onDaemon(async (daemon) => {
    const said = await runPage('examples/README.md', { url: daemon.url });
    expect(said.map(({ block }) => block.line)).toEqual(shellBlocksOf('examples/README.md').map(({ line }) => line));
    const { body } = await daemon.call('GET', '/api/v1/runs?status=succeeded&limit=50');
    expect((body as { items: unknown[] }).items.length).toBeGreaterThan(8);
  });
});

async function onDaemon(work: (daemon: DaemonHere) => Promise<void>): Promise<void> {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  await work(await daemonHere(database.url));
}

/** Its target prints the key and the body of a fire. */
async function firesAsTheReadmeSays(
  daemon: DaemonHere,
  said: readonly Said[],
  terminal: () => Promise<string>,
): Promise<void> {
  expect(said.find(({ block }) => block.text.includes('upcoming'))?.answers).toMatchObject([
    { items: [{}, {}, {}] },
    { items: expect.any(Array) as unknown },
    { status: 'ready' },
  ]);
  const { body } = await daemon.call('POST', '/api/v1/schedules/heartbeat/fire');
  const { id } = body as { id: string };
  await until(async () => ((await terminal()).includes(`${id} {`) ? true : null));
}

/** What a page shows, asked for again until it is so: a run takes its time. */
async function answersAsThePageSays(daemon: DaemonHere, page: string, said: readonly Said[]): Promise<void> {
  for (const answer of blocksOf(page).filter((block) => kindOf(block) === 'answer')) {
    const asked = said.find(({ block }) => block.line === askedBy(answer)?.line);
    const [, path = ''] = /^curl 'http:\/\/127\.0\.0\.1:8080(\S+)'$/m.exec(asked?.block.text ?? '') ?? [];
    const shown: unknown = JSON.parse(answer.text);
    await until(async () => {
      const { body } = await daemon.call('GET', path);
      const [run] = (body as { items: { finishedAt: string | null }[] }).items;
      if (run?.finishedAt === null) return null;
      expectAnswer(placeOf(answer), shown, [body], LOOSE);
      return true;
    });
  }
  const why = said.find(({ block }) => block.text.includes('schedule why'));
  expect(why?.out).toContain('lunch');
}
