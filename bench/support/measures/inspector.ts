/** Node's inspector, spoken to over its WebSocket: it profiles a process from outside, from one moment to another. */
interface Inspector {
  startProfile(): Promise<void>;
  stopProfile(): Promise<CpuProfile>;
  close(): void;
}

/** What V8 answers: a sample in every few hundred microseconds, and the node of the call tree that it was in. */
export interface CpuProfile {
  nodes: readonly ProfileNode[];
  samples: readonly number[];
  /** Microseconds since the sample before. */
  timeDeltas: readonly number[];
}

export interface ProfileNode {
  id: number;
  callFrame: { functionName: string; url: string; lineNumber: number };
}

const INTERVAL_MICROSECONDS = 200;

/** Of a process that was started with `--inspect=127.0.0.1:PORT`. */
export async function openInspector(port: number): Promise<Inspector> {
  const [page] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  if (!page) throw new Error('there is no inspector');
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let asked = 0;
  socket.addEventListener('message', ({ data }) => {
    const { id, result, error } = JSON.parse(String(data)) as {
      id?: number;
      result: unknown;
      error?: object;
    };
    const answer = waiting.get(id ?? NaN);
    if (error) answer?.reject(new Error(JSON.stringify(error)));
    else answer?.resolve(result);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => {
      reject(new Error('the inspector cannot be reached'));
    });
  });

  function ask(method: string, params: object = {}): Promise<unknown> {
    asked += 1;
    const answer = Promise.withResolvers<unknown>();
    waiting.set(asked, answer);
    socket.send(JSON.stringify({ id: asked, method, params }));
    return answer.promise;
  }

  await ask('Profiler.enable');
  await ask('Profiler.setSamplingInterval', { interval: INTERVAL_MICROSECONDS });
  return {
    startProfile: async () => {
      await ask('Profiler.start');
    },
    stopProfile: async () => ((await ask('Profiler.stop')) as { profile: CpuProfile }).profile,
    close: () => {
      socket.close();
    },
  };
}
