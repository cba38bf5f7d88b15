// Runs the commands of an imported crontab, as cron would have: takes runs of a queue whose payload is
// {command, stdin?, user?, env?}, gives the command to a shell, and reports how it ended and what it printed. Start one on
// each machine that may run the commands. Copy it as it is: it imports nothing but Node, and runs as a module or as CommonJS.
//
//   node crontab-worker.js [QUEUE]   QUEUE (crontab), FIRELOCK_URL (http://127.0.0.1:8080), WORKER_ID (one of its own),
//                                    LEASE_SECONDS (60), AT_ONCE (10: commands at the same time), ANY_PAYLOAD (1: see below),
//                                    FIRELOCK_TOKEN (of role worker; none where the daemon asks for none)
//
// It runs only commands that stand in a schedule, which an admin wrote. A run whose payload came with the call that made it
// (a fire with a payload, a one-off run: operators may make these) fails unless ANY_PAYLOAD is 1.
// A command runs as the user of this program. One that names another user is refused, unless this program is root's: then
// setpriv (util-linux) starts it, with all groups of that user.

const load = (name) => process.getBuiltinModule(name);
const { spawn, spawnSync } = load('node:child_process');
const { statSync } = load('node:fs');
const { hostname, userInfo } = load('node:os');

const queue = process.argv[2] ?? 'crontab';
const firelock = `${process.env.FIRELOCK_URL ?? 'http://127.0.0.1:8080'}/api/v1`;
const headers = {
  'content-type': 'application/json',
  ...(process.env.FIRELOCK_TOKEN && { authorization: `Bearer ${process.env.FIRELOCK_TOKEN}` }),
};
const workerId = process.env.WORKER_ID ?? `crontab-${hostname()}-${process.pid}`;
const leaseSeconds = Number(process.env.LEASE_SECONDS ?? 60);
const atOnce = Number(process.env.AT_ONCE ?? 10);
const takesAnyPayload = process.env.ANY_PAYLOAD === '1';
/** What of the output goes into the result. */
const MAX_OUTPUT = 4000;
/** Aborted by SIGTERM or Ctrl-C: no more claims; the commands under way end as they do. */
const stopping = new AbortController();
const underWay = new Set();

async function main() {
  for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => stopping.abort());
  console.log(`${workerId} runs the commands of ${queue}`);
  let failures = 0;
  while (!stopping.signal.aborted) {
    try {
      if (underWay.size >= atOnce) await Promise.race(underWay);
      for (const run of await claim(atOnce - underWay.size)) {
        const done = lead(run).finally(() => underWay.delete(done));
        underWay.add(done);
      }
      failures = 0;
    } catch (error) {
      if (stopping.signal.aborted) break;
      if (error.isFinal) throw error;
      await backOff('claim', error, (failures += 1), stopping.signal);
    }
  }
  await Promise.all(underWay);
  console.log(`${workerId} has stopped`);
}

/** Waits at the daemon for up to 20 s until there is a run. */
async function claim(max) {
  const word = { workerId, leaseSeconds, max, waitSeconds: 20 };
  return (await post(`/queues/${queue}/claim`, word, stopping.signal)).items;
}

async function lead(run) {
  const speaker = { attempt: run.attempts, workerId };
  const lost = new AbortController();
  const heartbeat = setInterval(() => {
    post(`/runs/${run.id}/heartbeat`, speaker).catch((error) => error.isFinal && lost.abort());
  }, leaseSeconds * 333);
  const end = await execute(run, lost.signal)
    .catch((error) => ({ status: 'failed', error: error.message }))
    .finally(() => clearInterval(heartbeat));
  if (lost.signal.aborted)
    return console.log(`${run.id}: cancelled, or another worker has it by now: stopped`);
  for (let failures = 1; ; failures += 1) {
    try {
      await post(`/runs/${run.id}/complete`, { ...end, ...speaker });
      return console.log(`${run.id}: ${end.status}`);
    } catch (error) {
      if (error.isFinal) return console.log(`${run.id}: not taken: ${error.message}`);
      await backOff(run.id, error, failures);
    }
  }
}

/** As cron does it: a shell, the environment of the crontab and little else, in the user's home. */
async function execute({ payload, payloadFrom }, signal) {
  if (payloadFrom !== 'schedule' && !takesAnyPayload) throw new Error(FOREIGN);
  const { command, stdin = '', user = null, env = {} } = payload ?? {};
  if (typeof command !== 'string') throw new Error('the payload has no command');
  const me = { ...userInfo(), prefix: [] };
  if (user !== null && user !== me.username && me.uid !== 0)
    throw new Error(`this worker is ${me.username}, not ${user}`);
  const account = user === null || user === me.username ? me : accountOf(user);
  const home = env.HOME ?? account.homedir;
  const shell = env.SHELL ?? '/bin/sh';
  const [program, ...words] = [...account.prefix, shell, '-c', command];
  const child = spawn(program, words, {
    // cron starts a command although its home is not there.
    cwd: isFolder(home) ? home : '/',
    env: {
      PATH: '/usr/bin:/bin',
      ...env,
      HOME: home,
      SHELL: shell,
      LOGNAME: account.username,
      USER: account.username,
    },
    // A group of its own: what the command has started ends with it.
    detached: true,
  });
  signal.addEventListener('abort', () => process.kill(-child.pid, 'SIGTERM'), { once: true });
  child.stdin.on('error', () => undefined).end(stdin);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output = (output + text).slice(-MAX_OUTPUT)));
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject).once('close', (status, by) => resolve(status ?? by));
  });
  if (code === 0) return { status: 'succeeded', result: { output } };
  return { status: 'failed', error: `exit ${code}: ${output}`, result: { exit: code, output } };
}

const FOREIGN =
  'the command did not come from the schedule, but with the call that made this run, so it was not run; ' +
  'a worker that is started with ANY_PAYLOAD=1 runs such commands';

/** Also what makes a command one of the account, with all its groups: Node would leave it the first one only. */
function accountOf(user) {
  const found = spawnSync('getent', ['passwd', user], { encoding: 'utf8' });
  if (found.error) throw new Error(`looking up user ${user}: ${found.error.message}`);
  if (found.status !== 0) throw new Error(`there is no user ${user} on ${hostname()}`);
  const [username, , uid, gid, , homedir] = found.stdout.trim().split(':');
  const prefix = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--'];
  return { username, homedir, prefix };
}

function isFolder(path) {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** @throws an error that `isFinal` where asking again is of no use: 4xx but 408 and 429. */
async function post(path, body, signal) {
  const limit = AbortSignal.timeout(30_000);
  const response = await fetch(firelock + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
  });
  const { status } = response;
  if (response.ok) return response.json();
  const isFinal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  throw Object.assign(new Error(`${status} ${await response.text()}`), { isFinal });
}

/** 1, 2, 4 … 30 seconds, of which half at random. Ends early when the signal is aborted. */
async function backOff(what, error, failures, signal) {
  const seconds = Math.min(2 ** (failures - 1), 30) * (0.5 + Math.random() / 2);
  console.log(`${what}: ${error.cause?.code ?? error.message}; again in ${seconds.toFixed(1)} s`);
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal?.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
