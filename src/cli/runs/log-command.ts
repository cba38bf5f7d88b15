import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { type Cli, withExamples } from '../cli.ts';
import { failure } from '../exit-codes.ts';
import { wholeNumber } from '../server/list-pages.ts';
import { type Answer, type Server, pathOf } from '../server/server-calls.ts';
import { createLogText } from '../terminal/shown-text.ts';
import { patient } from '../common/patience.ts';

interface Options {
  follow?: boolean;
  attempt?: number;
}

export function addRunLog(parent: Command, cli: Cli): void {
  const command = parent
    .command('log <id>')
    .description('show what a run has printed; on standard error, how many bytes of it were not kept')
    .option('-f, --follow', 'go on until the attempt is over, or until Ctrl-C')
    .option('--attempt <n>', 'of this attempt (default: the newest)', wholeNumber)
    .action((id: string, options: Options) => showLog(cli, id, options));
  withExamples(
    command,
    'firelock run log 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60',
    'firelock run log -f 0199c1f0-7a00-7b3c-9a5e-2f4d1c8b7a60 --attempt 2 | grep error',
  );
}

interface Part {
  bytes: Buffer;
  next: number;
  skipped: number;
  attempt: number;
  isComplete: boolean;
}

const WAIT_SECONDS = 55;
/** After an answer to one who follows: a run that prints all the time is asked for this often. */
const PACE_MS = 200;

async function showLog(cli: Cli, id: string, { follow = false, attempt }: Options): Promise<void> {
  const { signal } = cli.surroundings;
  const printer = createPrinter(cli);
  const question = { id, attempt, offset: 0, waitSeconds: follow ? WAIT_SECONDS : 0 };
  const read = () => readPart(cli.server(), question);
  const ask = follow ? patient(read, cli.output(), signal) : read;
  try {
    for (;;) {
      const part = await ask();
      if (part === null) continue;
      await printer.print(part);
      const isNews = part.next > question.offset;
      question.offset = part.next;
      question.attempt = part.attempt;
      if (part.isComplete || (!follow && !isNews)) return;
      if (follow) await delay(PACE_MS, undefined, { signal });
    }
  } catch (error) {
    // A user stops following by Ctrl-C.
    if (!follow || !signal.aborted) throw error;
  } finally {
    printer.end();
  }
}

async function readPart(
  server: Server,
  { id, ...query }: { id: string; attempt: number | undefined; offset: number; waitSeconds: number },
): Promise<Part> {
  const answer = await server.call('GET', pathOf('runs', id, 'log'), { query, headers: { accept: '*/*' } });
  const [next, skipped, attempt] = ['offset', 'skipped', 'attempt'].map((name) => numberIn(answer, name));
  if (next === undefined || skipped === undefined || attempt === undefined || next < query.offset)
    throw failure(`the server at ${server.url} says nothing about the log; check FIRELOCK_URL`);
  const isComplete = answer.header('firelock-log-complete') === 'true';
  return { bytes: answer.bytes, next, skipped, attempt, isComplete };
}

function numberIn(answer: Answer, name: string): number | undefined {
  const said = answer.header(`firelock-log-${name}`) ?? '';
  return /^\d{1,16}$/.test(said) ? Number(said) : undefined;
}

/** A pipe gets the bytes as they are. */
function createPrinter(cli: Cli) {
  const { out } = cli.surroundings;
  const text = out.isTerminal ? createLogText() : null;
  return {
    print: async ({ bytes, skipped }: Part): Promise<void> => {
      if (skipped > 0) cli.output().note(`${skipped} bytes were left out here`);
      if (bytes.length > 0) out.write(text?.take(bytes) ?? bytes);
      await out.written?.();
    },
    end: (): void => {
      if (text) out.write(text.end());
    },
  };
}
