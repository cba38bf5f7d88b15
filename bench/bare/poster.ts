import { Client } from 'undici';

/** What a POST tells; the daemon's tells the same. */
export interface Post {
  runId: string;
  /** Null: a one-off run's. */
  scheduleId: string | null;
  scheduledFor: string;
}

export interface Poster {
  /** Sends it on the next free connection; `onAnswered` hears of it. */
  post(post: Post): void;
}

/** Plain undici: one client per connection, each with one request at a time. Any trouble ends the process. */
export function createPoster(url: string, connections: number, onAnswered: (post: Post) => void): Poster {
  const { origin, pathname } = new URL(url);
  const idle = Array.from({ length: connections }, () => new Client(origin, { pipelining: 1 }));
  const waiting: Post[] = [];
  let next = 0;

  function send(client: Client, post: Post): void {
    client.dispatch(
      { path: pathname, method: 'POST', headers: headersOf(post), body: bodyOf(post) },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status) => {
          if (status !== 204) throw new Error(`the receiver answered ${status}`);
        },
        onResponseData: () => undefined,
        onResponseEnd: () => {
          onAnswered(post);
          const following = waiting[next];
          if (following === undefined) {
            waiting.length = 0;
            next = 0;
            idle.push(client);
            return;
          }
          next += 1;
          send(client, following);
        },
        onResponseError: (_controller, error) => {
          throw error;
        },
      },
    );
  }

  return {
    post: (post) => {
      const client = idle.pop();
      if (client) send(client, post);
      else waiting.push(post);
    },
  };
}

/** As many and as long as the daemon's, so that both put the same bytes on the wire. */
function headersOf({ runId, scheduleId, scheduledFor }: Post): string[] {
  return [
    'user-agent',
    'firelock/0.1.0',
    'webhook-id',
    runId,
    'webhook-timestamp',
    String(Math.floor(Date.now() / 1000)),
    'idempotency-key',
    runId,
    'ce-specversion',
    '1.0',
    'ce-id',
    runId,
    'ce-source',
    scheduleId === null ? '/runs' : `/schedules/${scheduleId}`,
    'ce-type',
    'firelock.run',
    'ce-time',
    scheduledFor,
    'traceparent',
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'content-type',
    'application/json',
  ];
}

function bodyOf({ runId, scheduleId, scheduledFor }: Post): string {
  return JSON.stringify({
    runId,
    runName: scheduleId === null ? null : `${scheduleId}@${scheduledFor}`,
    scheduleId,
    scheduledFor,
    trigger: scheduleId === null ? 'api' : 'schedule',
    attempt: 1,
    recovery: null,
    payload: null,
  });
}
