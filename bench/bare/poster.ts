import { Client } from 'undici';

/** What a POST tells: no more than the receiver needs to tell each fire from every other. */
export interface Post {
  runId: string;
  /** Null: a one-off run's. */
  scheduleId: string | null;
  scheduledFor: string;
}

export interface Poster {
  /** Sends it on the next free connection. */
  post(post: Post, onAnswered: () => void): void;
  /** Resolves when each of them is answered. */
  postAll(posts: readonly Post[]): Promise<void>;
}

interface Waiting {
  post: Post;
  onAnswered: () => void;
}

/** Plain undici: one client per connection, each with one request at a time. Any trouble ends the process. */
export function createPoster(url: string, connections: number): Poster {
  const { origin, pathname } = new URL(url);
  const idle = Array.from({ length: connections }, () => new Client(origin, { pipelining: 1 }));
  const waiting: Waiting[] = [];
  let next = 0;

  function send(client: Client, { post, onAnswered }: Waiting): void {
    client.dispatch(
      { path: pathname, method: 'POST', headers: headersOf(post), body: bodyOf(post) },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status) => {
          if (status !== 204) throw new Error(`the receiver answered ${status}`);
        },
        onResponseData: () => undefined,
        onResponseEnd: () => {
          onAnswered();
          goOn(client);
        },
        onResponseError: (_controller, error) => {
          throw error;
        },
      },
    );
  }

  function goOn(client: Client): void {
    const following = waiting[next];
    if (following === undefined) {
      waiting.length = 0;
      next = 0;
      idle.push(client);
      return;
    }
    next += 1;
    send(client, following);
  }

  function post(one: Post, onAnswered: () => void): void {
    const client = idle.pop();
    if (client) send(client, { post: one, onAnswered });
    else waiting.push({ post: one, onAnswered });
  }

  return {
    post,
    postAll: (posts) =>
      new Promise((resolve) => {
        let unanswered = posts.length;
        const onAnswered = () => {
          unanswered -= 1;
          if (unanswered === 0) resolve();
        };
        for (const one of posts) post(one, onAnswered);
      }),
  };
}

function headersOf({ runId, scheduleId, scheduledFor }: Post): string[] {
  return [
    'content-type',
    'application/json',
    'idempotency-key',
    runId,
    'ce-source',
    scheduleId === null ? '/runs' : `/schedules/${scheduleId}`,
    'ce-time',
    scheduledFor,
  ];
}

function bodyOf({ runId }: Post): string {
  return `{"runId":"${runId}"}`;
}
