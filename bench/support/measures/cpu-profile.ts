/** Microseconds that a function, a file or a package had by itself. */
interface Share {
  what: string;
  microseconds: number;
}

export interface Shares {
  /** Of the main thread, without those in which it had nothing to do. */
  busyMicroseconds: number;
  idleMicroseconds: number;
  functions: Share[];
  /** A folder of firelock's, a package, or a part of Node; garbage collection by itself. */
  parts: Share[];
}

/** Largest first. */
export function sharesOf({ nodes, samples, timeDeltas }: CpuProfile): Shares {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const functions = new Map<string, number>();
  const parts = new Map<string, number>();
  let [busyMicroseconds, idleMicroseconds] = [0, 0];
  for (const [index, id] of samples.entries()) {
    const node = byId.get(id);
    // A sample stands for the time until the next one.
    const microseconds = Math.max(0, timeDeltas[index + 1] ?? 0);
    if (!node || node.callFrame.functionName === '(idle)') {
      idleMicroseconds += microseconds;
      continue;
    }
    busyMicroseconds += microseconds;
    add(functions, functionOf(node), microseconds);
    add(parts, partOf(node), microseconds);
  }
  return { busyMicroseconds, idleMicroseconds, functions: sorted(functions), parts: sorted(parts) };
}

function add(sums: Map<string, number>, what: string, microseconds: number): void {
  sums.set(what, (sums.get(what) ?? 0) + microseconds);
}

function sorted(sums: ReadonlyMap<string, number>): Share[] {
  return [...sums]
    .map(([what, microseconds]) => ({ what, microseconds }))
    .sort((a, b) => b.microseconds - a.microseconds);
}

function functionOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const name = functionName === '' ? '(anonymous)' : functionName;
  return url === '' ? name : `${name} ${shortOf(url)}:${lineNumber + 1}`;
}

function partOf({ callFrame: { functionName, url } }: ProfileNode): string {
  if (url.startsWith('wasm:')) return 'WebAssembly';
  if (url === '') return functionName.startsWith('(') ? functionName : '(native)';
  const path = shortOf(url);
  const [, name] = /^((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (url.includes('/node_modules/')) return `package ${name ?? path}`;
  return path.startsWith('node:') ? path : `firelock ${path.split('/').slice(0, -1).join('/')}/`;
}

/** From the package's name, or from below dist/ or bench/, on. */
function shortOf(url: string): string {
  const [, below] = /^.*\/(?:node_modules|dist|bench)\/(.*)$/.exec(url) ?? [];
  return below ?? url;
}

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

interface ProfileNode {
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
