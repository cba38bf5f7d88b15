// Takes runs from firelock, in Node 20 or newer: verifies the signature, notes each run once, answers, and then does the
// work. It needs the package firelock-client (README.md says how to install it).
//
//   WEBHOOK_SECRET=whsec_… node receiver.mjs      several secrets: with spaces between them
//                                                 PORT (9000), DIRECTORY (runs), in which it remembers
import { mkdir, open, readFile, readdir, rename, unlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { openFileStore } from 'firelock-client/file-store';
import { createReceiver } from 'firelock-client/receiver';

const directory = process.env.DIRECTORY ?? 'runs';
const todo = join(directory, 'todo');
await mkdir(todo, { recursive: true });

/** Put your work here. It may be done twice if the process dies in the middle of it. */
async function work({ runId }) {
  console.log(`${runId}: done`);
}

const receiver = createReceiver({
  secrets: (process.env.WEBHOOK_SECRET ?? '').split(' '),
  // Which runs were here, and what was answered. It outlives the process.
  store: await openFileStore(join(directory, 'seen.jsonl')),
  // Called once for each run; what it returns is the answer. It only notes the run, so that the answer comes soon.
  work: async ({ runId, payload }) => {
    await write(runId, `{"runId":"${runId}","payload":${payload.text}}`);
    wake();
    return { executionId: `job-${runId}` };
  },
});

/** Whole or not at all, and on the disk before it is answered. */
async function write(runId, text) {
  const fresh = join(directory, `${runId}.new`);
  const file = await open(fresh, 'w');
  await file.writeFile(text);
  await file.sync();
  await file.close();
  await rename(fresh, join(todo, runId));
  const folder = await open(todo);
  await folder.sync();
  await folder.close();
}

let wake = () => undefined;

async function workForever() {
  for (;;) {
    const woken = new Promise((resolve) => (wake = resolve));
    let failed = false;
    for (const runId of await readdir(todo)) {
      try {
        await work(JSON.parse(await readFile(join(todo, runId), 'utf8')));
        await unlink(join(todo, runId));
      } catch (error) {
        failed = true;
        console.error(`${runId}: ${error.message}; again later`);
      }
    }
    if (failed) setTimeout(wake, 10_000);
    await woken;
  }
}

const server = createServer(receiver.node);
server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1', () => {
  console.log(`receiver listens on http://127.0.0.1:${server.address().port}`);
});
await workForever();
