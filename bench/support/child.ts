import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Child {
  process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts a module of this folder as a process that talks over a channel and ends when the channel does. */
export function forkModule(module: URL, args: readonly string[]): Child {
  const child = fork(fileURLToPath(module), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  return {
    process: child,
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

/** Sends one message and resolves with the next that comes back. */
export function ask<Answer>(child: ChildProcess, message: object): Promise<Answer> {
  const answer = nextMessage<Answer>(child);
  child.send(message);
  return answer;
}

/** Rejects when the process ends instead. */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const listening = new AbortController();
  const { signal } = listening;
  try {
    const [message] = (await Promise.race([
      once(child, 'message', { signal }),
      once(child, 'exit', { signal }).then(([code]: unknown[]) => {
        throw new Error(`a process of the benchmark ended with ${String(code)}`);
      }),
    ])) as [Message];
    return message;
  } finally {
    listening.abort();
  }
}
