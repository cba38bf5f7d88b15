/** A worker of BullMQ in a process of its own, and the queue that it works on. */
import type { BullmqOptions, BullmqWork } from './bullmq.ts';
import { requireFrom } from './install.ts';
import { createDelivery, serveWorker } from './worker.ts';

/** What is used of BullMQ, which is not installed where the types are checked. */
interface BullMq {
  Queue: new (name: string, options: Settings) => Queue;
  Worker: new (name: string, work: (job: Job) => Promise<void>, options: Settings) => Worker;
}

interface Settings {
  connection: { host: string; port: number };
  concurrency?: number;
}

interface Data {
  scheduleId: string;
  dueAt: number;
}

interface Job {
  id?: string;
  data: Data;
  attemptsMade: number;
}

interface Queue {
  addBulk(jobs: readonly { name: string; data: Data; opts: { timestamp: number; delay: number } }[]): Promise<unknown>;
  upsertJobScheduler(
    id: string,
    repeat: { pattern: string; tz: string },
    template: { name: string; data: Data },
  ): Promise<unknown>;
  getCompleted(): Promise<Job[]>;
}

interface Worker {
  waitUntilReady(): Promise<unknown>;
  on(event: 'completed', listener: () => void): void;
  on(event: 'failed' | 'stalled', listener: (...details: unknown[]) => void): void;
}

const QUEUE = 'herd';
const BULK = 1000;
/** Round trips at once when schedulers are made. */
const UPSERTS = 250;

const options = JSON.parse(process.argv[2] ?? '{}') as BullmqOptions;
const { Queue, Worker } = requireFrom(options.packages)('bullmq') as BullMq;
const connection = { host: '127.0.0.1', port: options.port };
const deliver = createDelivery(options);
const queue = new Queue(QUEUE, { connection });
const worker = new Worker(QUEUE, (job) => deliver(postOf(job)), {
  connection,
  concurrency: options.concurrency,
});
let left = 0;
let done: () => void = () => undefined;
worker.on('completed', () => {
  left -= 1;
  if (left === 0) done();
});
for (const event of ['failed', 'stalled'] as const) {
  worker.on(event, (...details) => {
    throw new Error(`a job ${event}: ${details.map(String).join(', ')}`);
  });
}
await worker.waitUntilReady();

serveWorker(async (message) => {
  switch (message.type) {
    case 'arm':
      left = message.count;
      await MAKERS[options.work](queue, message.count, message.dueAt);
      return [];
    case 'settled':
      if (left > 0) await new Promise<void>((resolve) => (done = resolve));
      return [];
    case 'history':
      return completedIds(queue, message.dueAt);
  }
});

const MAKERS: Record<BullmqWork, (queue: Queue, count: number, dueAt: number) => Promise<void>> = {
  'delayed jobs': async (queue, count, dueAt) => {
    for (let first = 0; first < count; first += BULK) {
      const timestamp = Date.now();
      const opts = { timestamp, delay: dueAt - timestamp };
      await queue.addBulk(
        namesOf(count, first, BULK, dueAt).map((id) => ({
          name: QUEUE,
          data: { scheduleId: id, dueAt },
          opts,
        })),
      );
    }
  },
  schedulers: async (queue, count, dueAt) => {
    const repeat = { pattern: cronOnceAt(dueAt), tz: 'UTC' };
    for (let first = 0; first < count; first += UPSERTS) {
      await Promise.all(
        namesOf(count, first, UPSERTS, dueAt).map((id) =>
          queue.upsertJobScheduler(id, repeat, { name: QUEUE, data: { scheduleId: id, dueAt } }),
        ),
      );
    }
  },
};

function namesOf(count: number, first: number, most: number, dueAt: number): string[] {
  const length = Math.min(most, count - first);
  return Array.from({ length }, (_, index) => `herd-${dueAt}-${first + index}`);
}

/** With seconds, as firelock's: this moment and then none for a year. */
function cronOnceAt(at: number): string {
  const moment = new Date(at);
  const date = [moment.getUTCHours(), moment.getUTCDate(), moment.getUTCMonth() + 1];
  return [moment.getUTCSeconds(), moment.getUTCMinutes(), ...date, '*'].join(' ');
}

function postOf({ id, data }: Job): { runId: string; scheduleId: string; scheduledFor: string } {
  return {
    runId: id ?? '',
    scheduleId: data.scheduleId,
    scheduledFor: new Date(data.dueAt).toISOString(),
  };
}

async function completedIds(queue: Queue, dueAt: number): Promise<string[]> {
  const jobs = (await queue.getCompleted()).filter(({ data }) => data.dueAt === dueAt);
  const again = jobs.find(({ attemptsMade }) => attemptsMade !== 1);
  if (again) throw new Error(`job ${again.id ?? ''} took ${again.attemptsMade} attempts`);
  return jobs.map(({ id }) => id ?? '');
}
