import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Child {
  process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts a module of this folder as a process that talks over a channel and ends when the channel does. */
export function forkModule(module: URL, args: readonly string[], nodeOptions: readonly string[] = []): Child {
  const execArgv = [...process.execArgv, ...nodeOptions];
  const child = fork(fileURLToPath(module), args, {
    execArgv,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
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
export function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  return messageThat(child, (message: Message): message is Message => message !== undefined);
}

/** The next message of this kind, whatever comes between. Rejects when the process ends instead. */
export function messageThat<Message, Wanted extends Message>(
  child: ChildProcess,
  isWanted: (message: Message) => message is Wanted,
): Promise<Wanted> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: unknown) => {
      if (!isWanted(message as Message)) return;
      finish();
      resolve(message as Wanted);
    };
    const onExit = (code: number | null) => {
      finish();
      reject(new Error(`a process of the benchmark ended with ${String(code)}`));
    };
    const finish = () => child.off('message', onMessage).off('exit', onExit);
    child.on('message', onMessage).on('exit', onExit);
  });
}
