// Turns what firelock hands over into what a chat's incoming webhook takes ({"text": …}, as Slack, Mattermost and others
// do), and answers with the chat's own answer. It keeps nothing: the message is a run of firelock, so that it is tried again
// while the chat is away, by the run's own retries, and its history says whether it went out.
//
//   CHAT_URL=https://hooks.example.com/… node relay.mjs      PORT (9000), FIRELOCK_URL (http://127.0.0.1:8080),
//                                                       FIRELOCK_TOKEN (of role viewer, if the daemon asks for one)
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

const firelock = process.env.FIRELOCK_URL ?? 'http://127.0.0.1:8080';
const chat = process.env.CHAT_URL;
if (chat === undefined) throw new Error('CHAT_URL is missing');

/** The run that ended is the one dependency of the run that tells of it; its name is asked for, as it is not handed over. */
async function textOf({ dependencies: [ended] }) {
  const address = `${firelock}/api/v1/runs/${ended.runId}`;
  const { FIRELOCK_TOKEN: token } = process.env;
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const run = await fetch(address, { headers, signal: AbortSignal.timeout(5000) })
    .then((response) => (response.ok ? response.json() : null))
    .catch(() => null);
  const what = run === null ? `run ${ended.runId}` : `${run.scheduleId}, of ${run.scheduledFor},`;
  const why = ended.error?.message ?? run?.reason;
  return `${what} ended as ${ended.status}${why ? `: ${why}` : ''}\n${address}`;
}

async function post(handoff) {
  const answer = await fetch(chat, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: await textOf(handoff) }),
    // Shorter than the schedule's timeoutSeconds: then it is this relay that says what went wrong.
    signal: AbortSignal.timeout(15_000),
  });
  const retryAfter = answer.headers.get('retry-after');
  return {
    status: answer.status,
    headers: retryAfter ? { 'retry-after': retryAfter } : {},
    body: await answer.text(),
  };
}

const server = createServer(async (request, response) => {
  // The chat cannot be reached: 502, for which firelock tries again.
  const answer = await json(request)
    .then(post)
    .catch((error) => ({ status: 502, headers: {}, body: String(error.cause ?? error) }));
  response.writeHead(answer.status, answer.headers).end(answer.body);
});

server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1', () => {
  console.log(`relay listens on http://127.0.0.1:${server.address().port}`);
});
