import { setTimeout } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { secretNameFault } from '../../core/connections/credential-rules.ts';
import { type Clock, systemClock } from '../../runtime/clock.ts';
import { within } from '../../runtime/within.ts';
import { type FileLook, EMPTY, lookAtFile, versionOfFile } from './secret-file-look.ts';

/** The files of FIRELOCK_SECRETS_DIR. */
export interface SecretFiles {
  /**
   * The text of a file as it is now, without one final newline. Ends after 10 s at the latest.
   * @throws Error that names the file and the reason, never content
   */
  read(name: string): Promise<string>;
}

/** What some of them say now, by name. @throws as `read` */
export async function readAll(files: SecretFiles, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return new Map(await Promise.all([...new Set(names)].map(async (name) => [name, await files.read(name)] as const)));
}

export function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([name, text]) => other.get(name) === text);
}

interface SecretFilesOptions {
  clock: Pick<Clock, 'now'>;
  look: typeof lookAtFile;
  versionOf: typeof versionOfFile;
  /** Between two looks at a file that is being written. */
  pause: () => Promise<void>;
  limitMs: number;
}

/** `directory`: null if none is configured. */
export function createSecretFiles(directory: string | null, options: Partial<SecretFilesOptions> = {}): SecretFiles {
  if (directory === null)
    return {
      read: (name) => Promise.reject(unusable(name, 'cannot be read: FIRELOCK_SECRETS_DIR is not set')),
    };
  return new Files(directory, { ...STANDARD, ...options });
}

const STANDARD: SecretFilesOptions = {
  clock: systemClock,
  look: lookAtFile,
  versionOf: versionOfFile,
  pause: () => setTimeout(50),
  limitMs: 10_000,
};

const MOST_KNOWN = 1_000;
const MOST_LOOKS = 4;

/** Longer than file systems are inexact about times: a file that was changed before is not changed again under the same version. */
const AT_REST_MS = 2_000;

/**
 * What is used is a state of a file in which two looks found it, at least 50 ms apart, or in which it had been for two seconds.
 * - A file that is replaced (written beside, then renamed; the links of Kubernetes) is taken whole, always.
 * - A file that is written in place is not taken while it is empty, while it is written, nor in a pause of the writer of less than
 *   50 ms. What a writer leaves unfinished for longer cannot be told from a finished file.
 * - Until a new state is taken, the last one stays in use; so it does while the file is empty, for two seconds.
 * - A file that is changed without a new time, inode or size is seen as unchanged. That a machine's or a file server's
 *   clock is set back can make that happen.
 *
 * There is one operation at a time: each occupies one of the four threads of libuv, and a network mount that hangs never
 * gives it back.
 */
class Files implements SecretFiles {
  readonly #directory: string;
  readonly #options: SecretFilesOptions;
  /** The states that are in use. */
  readonly #taken = new LRUCache<string, TimedLook>({ max: MOST_KNOWN });
  /** Readings whose look at the file has not begun: who asks now may share it. */
  readonly #queued = new Map<string, Promise<string>>();
  #line: Promise<unknown> = Promise.resolve();
  #hangs = false;

  constructor(directory: string, options: SecretFilesOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  async read(name: string): Promise<string> {
    const fault = secretNameFault(name);
    if (fault !== null) throw unusable(name, fault);
    // None may pile up behind it.
    if (this.#hangs) throw unusable(name, HANGING);
    return this.#queued.get(name) ?? this.#queue(name);
  }

  #queue(name: string): Promise<string> {
    const looked = this.#inTurn(() => {
      this.#queued.delete(name);
      return this.#lookIfChanged(name);
    });
    const reading = this.#inTime(
      name,
      looked.then((look) => this.#settled(name, look)),
    );
    this.#queued.set(name, reading);
    return reading;
  }

  async #inTime(name: string, reading: Promise<string>): Promise<string> {
    if (await within(reading, this.#options.limitMs)) return reading;
    this.#queued.delete(name);
    this.#hangs = true;
    throw unusable(name, HANGING);
  }

  #inTurn(work: () => Promise<TimedLook>): Promise<TimedLook> {
    const turn = this.#line.then(work).finally(() => {
      this.#hangs = false;
    });
    this.#line = turn.catch(() => undefined);
    return turn;
  }

  /** A file at rest is read only if it has changed. */
  async #lookIfChanged(name: string): Promise<TimedLook> {
    const taken = this.#taken.get(name);
    if (taken?.atRest !== true) return this.#look(name);
    const version = await this.#options.versionOf(this.#directory, name);
    return version === taken.version ? taken : this.#look(name);
  }

  async #look(name: string): Promise<TimedLook> {
    const { clock, look } = this.#options;
    const now = clock.now();
    const found = await look(this.#directory, name);
    const { version, changedAt } = found;
    return { ...found, atRest: version !== null && changedAt !== null && changedAt <= now - AT_REST_MS };
  }

  async #settled(name: string, first: TimedLook): Promise<string> {
    let before = this.#taken.get(name);
    let look = first;
    for (let looks = 1; !look.atRest && !agree(look, before); looks++) {
      if (looks === MOST_LOOKS) return this.#meanwhile(name, look);
      await this.#options.pause();
      before = look;
      look = await this.#inTurn(() => this.#look(name));
    }
    this.#taken.set(name, look);
    return textOf(name, look.content);
  }

  #meanwhile(name: string, { content }: FileLook): string {
    const taken = this.#taken.get(name);
    if (taken !== undefined && 'text' in taken.content) return taken.content.text;
    return textOf(name, 'fault' in content ? content : { fault: 'is being written' });
  }
}

interface TimedLook extends FileLook {
  atRest: boolean;
}

/** An empty file is one that is being written, until it is at rest. */
function agree({ version, content }: FileLook, before: FileLook | undefined): boolean {
  if (before === undefined || version === null || version !== before.version) return false;
  if ('text' in content) return 'text' in before.content && content.text === before.content.text;
  return content.fault !== EMPTY && 'fault' in before.content && content.fault === before.content.fault;
}

function textOf(name: string, content: FileLook['content']): string {
  if ('fault' in content) throw unusable(name, content.fault);
  return content.text;
}

const HANGING = 'cannot be read: the directory does not answer';

function unusable(name: string, fault: string): Error {
  return new Error(`the secret file ${JSON.stringify(name)} ${fault}`);
}
