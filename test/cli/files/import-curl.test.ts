import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { HttpTarget } from '../../../src/core/schedules/schedule.ts';
import { sharedApi } from '../../api/api.ts';
import { targetAt } from '../../support/targets.ts';
import { attemptOf, httpTarget, never, receive } from '../../targets/receivers.ts';
import { firelock } from '../cli.ts';

const api = sharedApi();

interface Schedule {
  id: string;
  description: string;
  target: Partial<HttpTarget<string>> & { type: string };
  payload?: { command: string; stdin?: string };
  timeoutSeconds?: number;
}

async function imported(commands: string | readonly string[], ...args: string[]) {
  const lines = typeof commands === 'string' ? commands : commands.map((one) => `@daily ${one}\n`).join('');
  const { code, out, err } = await firelock(['import-crontab -', ...args], { input: lines });
  const { schedules } = parse(out) as { schedules: Schedule[] };
  return {
    code,
    out,
    schedules,
    remarks: err
      .replace(/^then start a worker .*\n/m, '')
      .split('\n')
      .slice(0, -1),
  };
}

const URL = 'https://example.com/job';
const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

const READ: [command: string, sent: Partial<HttpTarget<string>>][] = [
  [`curl ${URL}`, { url: URL, method: 'GET' }],
  [`/usr/bin/curl -fsS -o /dev/null -- ${URL}`, { url: URL, method: 'GET' }],
  [`curl ${URL} > /dev/null 2>&1`, { url: URL, method: 'GET' }],
  [`curl >>/dev/null 2>/dev/null ${URL} # nightly`, { url: URL, method: 'GET' }],
  [`curl -s "${URL}?a=1&b=\\%20"`, { url: `${URL}?a=1&b=%20`, method: 'GET' }],
  [`curl -sI ${URL}/~me/x`, { url: `${URL}/~me/x`, method: 'HEAD' }],
  [`curl -G -d a=1 --data-raw '@b' '${URL}?c'`, { url: `${URL}?c&a=1&@b`, method: 'GET' }],
  [`curl -XPOST ${URL}`, { url: URL, method: 'POST', body: 'payload' }],
  [`curl -s ${URL}?a=1`, { url: `${URL}?a=1`, method: 'GET' }],
  [`curl --request DELETE ${URL} --retry 0`, { url: URL, method: 'DELETE', body: 'payload' }],
  [
    `curl -d a=b -d 'c=d e' --data-raw @f ${URL}`,
    { url: URL, method: 'POST', body: { template: 'a=b&c=d e&@f', contentType: FORM } },
  ],
  [
    `curl ${URL} -X PUT -H 'Content-Type: application/json; charset=utf-8' -d '{"a": "\\n\\"ü"}'`,
    {
      url: URL,
      method: 'PUT',
      body: { template: '{"a": "\\n\\"ü"}', contentType: 'application/json; charset=utf-8' },
    },
  ],
  [
    `curl ${URL} -d "it's \\"\\$HOME\\" \\x"`,
    { url: URL, method: 'POST', body: { template: 'it\'s "$HOME" \\x', contentType: FORM } },
  ],
  [
    `curl ${URL} --json '[1,' --json '2]' -H "X-Requested-With:a"`,
    {
      url: URL,
      method: 'POST',
      headers: { 'X-Requested-With': 'a', Accept: JSON_TYPE },
      body: { template: '[1,2]', contentType: JSON_TYPE },
    },
  ],
  [`curl -d '' -H Expect: ${URL}`, { url: URL, method: 'POST', headers: { 'Content-Type': FORM }, body: 'payload' }],
  [
    `curl -H 'Content-Type: text/plain' --data-binary @- ${URL}%first%second`,
    { url: URL, method: 'POST', body: { template: 'first\nsecond\n', contentType: 'text/plain' } },
  ],
  [
    `curl -sd@- ${URL}%first%second`,
    { url: URL, method: 'POST', body: { template: 'firstsecond', contentType: FORM } },
  ],
  [
    `curl -H 'Cache-Control: $\{HOME}' 'http'"s"://example.com\\/job`,
    { url: URL, method: 'GET', headers: { 'Cache-Control': '$${HOME}' } },
  ],
];

test('a line that only calls curl becomes a target that sends the same, and needs no worker', async () => {
  const { code, schedules, remarks, out } = await imported(READ.map(([command]) => command));
  expect(remarks).toEqual([]);
  expect(schedules.map(({ target }) => target)).toEqual(READ.map(([, sent]) => ({ type: 'http', ...sent })));
  for (const { payload, timeoutSeconds } of schedules) expect([payload, timeoutSeconds]).toEqual([undefined, 3600]);
  expect(schedules[0]).toMatchObject({
    description: `curl ${URL}`,
    catchUp: 'skip',
    retry: { maxAttempts: 1 },
  });
  expect(code).toBe(0);
  const plan = await firelock('plan - --no-json', { url: api.url, input: out });
  expect([plan.code, plan.err]).toEqual([2, '']);
});

const STAYS: [command: string, why: string][] = [
  [`curl ${URL}; rm x`, '“;”: it is more than one call'],
  [`curl ${URL} && true`, '“&&”: it is more than one call'],
  [`cd /tmp && curl ${URL}`, '“&&”: it is more than one call'],
  [`curl ${URL} | sh`, '“|”: it is more than one call'],
  [`curl ${URL}/a=1&b=2`, '“&”: it is more than one call'],
  [`curl ${URL} &>/dev/null`, '“&”: it is more than one call'],
  [`curl ${URL} >/dev/null;reboot`, '“;”: it is more than one call'],
  [`(curl ${URL})`, '“(”: it is more than one call'],
  [`curl "${URL}/$(date)"`, 'the shell puts something else for “$”'],
  [`curl "${URL}/\`date\`"`, 'the shell puts something else for “`”'],
  [`curl ${URL}/$HOME`, 'the shell puts something else for “$”'],
  [`curl $'${URL}'`, 'the shell puts something else for “$”'],
  [`curl -d ? ${URL}`, '“?” without quotes: the shell may put something else for it'],
  [`curl ${URL}/*`, '“*” without quotes: the shell may put something else for it'],
  [`curl ${URL}/{a,b}`, '“{” without quotes: the shell may put something else for it'],
  [`curl -d {"a":1} ${URL}`, '“{” without quotes: the shell may put something else for it'],
  [`curl -d a=~ ${URL}`, '“~” without quotes: the shell may put something else for it'],
  [`curl -d ü ${URL}`, '“ü” without quotes: the shell may put something else for it'],
  [`curl ${URL} > /tmp/out`, 'its input or output is not that of cron or /dev/null'],
  [`curl ${URL} >/dev/null2>&1`, 'its input or output is not that of cron or /dev/null'],
  [`curl ${URL} 3>/dev/null`, 'its input or output is not that of cron or /dev/null'],
  [`curl ${URL} 2>&1>/dev/null`, 'its input or output is not that of cron or /dev/null'],
  [`curl ${URL} </dev/null`, 'its input or output is not that of cron or /dev/null'],
  [`curl '${URL}`, "' is not closed"],
  [`curl "${URL}\\"`, '" is not closed'],
  [`curl '${URL}/a%20b'`, "' is not closed"],
  [`curl ${URL}\\`, 'it ends with a backslash'],
  [`curl -d '\\\\' ${URL}`, 'versions of cron differ about “\\\\”'],
  [`curl -d '\\\\%' ${URL}`, 'versions of cron differ about “\\\\”'],
  [`curl -d 'a\rb' ${URL}`, 'it has a control character, or one that is not UTF-8'],
  [`curl -d '\ufffd' ${URL}`, 'it has a control character, or one that is not UTF-8'],
  [`A=1 curl ${URL}`, 'it does not begin with curl'],
  [`/opt/x/curl ${URL}`, 'it does not begin with curl'],
  [`timeout 5 curl ${URL}`, 'it does not begin with curl'],
  [`curl -L ${URL}`, '-L: firelock follows no redirect'],
  [`curl -sSfL ${URL}`, '-L: firelock follows no redirect'],
  [`curl -sk ${URL}`, 'the option -k'],
  [`curl --request=POST ${URL}`, 'the option --request=POST'],
  [`curl --compressed ${URL}`, 'the option --compressed'],
  [`curl - ${URL}`, 'the option -'],
  [`curl ${URL} -d`, '-d without a value'],
  [`curl -o out ${URL}`, '-o writes a file'],
  [`curl --retry 100 ${URL}`, '--retry 100: firelock makes at most 100 attempts'],
  [`curl --retry 3 --retry-delay 0.5 ${URL}`, '--retry-delay 0.5'],
  [`curl --retry-all-errors ${URL}`, 'the option --retry-all-errors'],
  [`curl -m 4000 ${URL}`, '-m 4000: firelock takes 1 to 3600 s'],
  [`curl -m 0.5 ${URL}`, '-m 0.5: firelock takes 1 to 3600 s'],
  [`curl -m soon ${URL}`, '-m soon is not a number of seconds'],
  [`curl --connect-timeout 5 -m 10 ${URL}`, '--connect-timeout: firelock has one limit for the whole call'],
  [`curl -d @/etc/passwd ${URL}`, '--data reads the file /etc/passwd'],
  [`curl --json @x ${URL}`, '--json reads the file x'],
  [`curl -d @- ${URL}`, '--data @- without an input (“%”)'],
  [`curl --data-raw @- ${URL}%x`, 'curl does not read its input (“%”)'],
  [`curl -d @- -d @- ${URL}%x`, 'two options read its input'],
  [`curl -d a -d '' ${URL}`, 'versions of curl differ about an empty -d beside others'],
  [`curl -d '{{runId}}' ${URL}`, '“{{” begins a placeholder in firelock (body)'],
  [`curl --json '{"a":"{{"}' ${URL}`, '“{{” begins a placeholder in firelock (body)'],
  [`curl --json a ${URL}`, 'its body is not JSON, although its content type says so'],
  [
    `curl -d a -H 'content-type: text/plain; charset=latin1' ${URL}`,
    'its content type must not have another charset than utf-8, in which the body is sent',
  ],
  [`curl -H 'X: {{runId}}' ${URL}`, '“{{” begins a placeholder in firelock (header X)'],
  [`curl -H @file ${URL}`, 'a header that is not of the form “name: value”'],
  [`curl -H 'X;' ${URL}`, 'a header that is not of the form “name: value”'],
  [`curl -H 'a(b: c' ${URL}`, 'firelock refuses headers/a(b: is not a header name'],
  [`curl -H 'X: ü' ${URL}`, 'the header X has characters that are not ASCII'],
  [`curl -H 'Host: a' ${URL}`, 'firelock sets the header Host itself'],
  [`curl -H 'Content-Type:' -d a ${URL}`, 'it removes the header Content-Type'],
  [`curl -H 'A: 1' -H 'a: 2' ${URL}`, 'two headers a'],
  [`curl -u me ${URL}`, '-u asks for a password'],
  [`curl -X GET -d a ${URL}`, 'a GET with a body'],
  [`curl -I -d a ${URL}`, 'a HEAD with a body'],
  [`curl -X HEAD ${URL}`, '-I and HEAD are not the same to curl'],
  [`curl -I -X GET ${URL}`, '-I and HEAD are not the same to curl'],
  [`curl -X post ${URL}`, 'firelock has no method post'],
  [`curl -s `, '0 URLs'],
  [`curl ${URL} ${URL}`, '2 URLs'],
  ['curl example.com', 'its URL does not begin with http:// or https://'],
  ['curl https://me@example.com', 'its URL has credentials'],
  [`curl '${URL}/[1-3]'`, 'curl expands “[” in its URL'],
  [`curl '${URL}/a b'`, 'firelock would write its URL in another way'],
  [`curl '${URL}#top'`, 'firelock would write its URL in another way'],
  [`curl '${URL}?'`, 'firelock would write its URL in another way'],
  [`curl ${URL}/../x`, 'firelock would write its URL in another way'],
  ["curl 'http://ex\u00e4mple.com'", 'firelock would write its URL in another way'],
  ['curl http://0x7f.1/', 'firelock would write its URL in another way'],
  ['curl http://localhost:8080/run', 'localhost is the machine on which a command runs'],
  ['curl http://127.1.2.3', '127.1.2.3 is the machine on which a command runs'],
  [`curl -G -d a=\\%2F ${URL}`, 'versions of curl differ about what -G makes of its URL'],
  [`curl -G --json 1 ${URL}`, '-G with --json'],
  [`curl '${URL}/${'x'.repeat(2100)}'`, 'firelock refuses url: Too big: expected string to have <=2048 characters'],
];

test('a line that a shell or curl may read in another way stays a command, and a comment says why', async () => {
  const { code, schedules, remarks, out } = await imported(STAYS.map(([command]) => command));
  expect(remarks).toEqual(
    STAYS.map(([, why], index) => `-:${index + 1}: its curl stays a command for a worker: ${why}`),
  );
  const before = await imported(
    STAYS.map(([command]) => command),
    '--queue',
    'crontab',
  );
  expect(before.remarks).toEqual([]);
  expect(schedules).toEqual(before.schedules);
  expect(out).toContain(
    '  # line 1: its curl stays a command for a worker: “;”: it is more than one call\n  - id: curl-',
  );
  expect(code).toBe(0);
});

test('a shell that is none of POSIX, and variables that curl obeys, keep a call of curl a command', async () => {
  const { remarks, schedules } = await imported(
    `SHELL=/usr/bin/fish\n@daily curl ${URL}\nSHELL=/bin/bash\n@daily curl ${URL}\nHTTPS_PROXY=http://p\n@daily curl ${URL}\n`,
  );
  expect(remarks).toEqual([
    '-:2: its curl stays a command for a worker: its shell is /usr/bin/fish',
    '-:6: its curl stays a command for a worker: curl obeys the variable HTTPS_PROXY',
  ]);
  expect(schedules.map(({ target }) => target.type)).toEqual(['pull', 'http', 'pull']);
});

test('nothing is said of a command that does not call curl, and --target-url gets all commands', async () => {
  const others = ['backup --curl', 'apt-get install -y curl', './mycurl x', 'curl-config --version', 'curl'];
  expect((await imported(others)).remarks).toEqual([]);
  const { schedules, remarks } = await imported([`curl ${URL}`], '--target-url', 'https://example.org/run');
  expect([schedules[0]?.target.url, schedules[0]?.payload?.command]).toEqual([
    'https://example.org/run',
    `curl ${URL}`,
  ]);
  expect(remarks).toEqual([]);
});

test('the limit of a call is that of -m, whoever its user is', async () => {
  const { schedules } = await imported(
    `@daily root curl -m 20 --connect-timeout 20 ${URL}\n@daily www curl -m2.5 ${URL}\n`,
    '--system',
  );
  expect(schedules.map(({ timeoutSeconds }) => timeoutSeconds)).toEqual([20, 2.5]);
  expect(schedules.map(({ payload }) => payload)).toEqual([undefined, undefined]);
});

test('passwords and values of headers stay out of the file, also when they change', async () => {
  const lines = (secret: string) => [
    `curl -fu 'me:${secret}' ${URL}`,
    `curl -H "Authorization: Bearer ${secret}" -H 'Accept: a/b' -d @- ${URL}%x%y`,
    `curl -H'X-Key: ${secret}' ${URL}`,
  ];
  const { out, schedules, remarks } = await imported(lines('swordfish'));
  expect(out).not.toContain('swordfish');
  expect(schedules.map(({ description }) => description)).toEqual([
    `curl -fu … ${URL}`,
    `curl -H "Authorization: …" -H 'Accept: a/b' -d @- ${URL}%x%y`,
    `curl "X-Key: …" ${URL}`,
  ]);
  const [basic = '', bearer = '', key = ''] = ['AUTHORIZATION', 'AUTHORIZATION', 'X_KEY'].map(
    (name, index) => `${schedules[index]?.id.toUpperCase().replace('-', '_') ?? ''}_${name}`,
  );
  expect(basic).toMatch(/^CURL_[\dA-F]{8}_AUTHORIZATION$/);
  expect(schedules.map(({ target }) => target.headers)).toEqual([
    { Authorization: `\${${basic}}` },
    { Authorization: `\${${bearer}}`, Accept: 'a/b' },
    { 'X-Key': `\${${key}}` },
  ]);
  expect(remarks).toEqual([
    `-:1: the value of Authorization is not in this file: put “Basic ” and the base64 of the user:password after -u into ${basic} (--variable)`,
    `-:2: the value of Authorization is not in this file: put what the crontab has into ${bearer} (--variable)`,
    `-:3: the value of X-Key is not in this file: put what the crontab has into ${key} (--variable)`,
  ]);
  const plan = ['plan', '-', '--no-json', ...[basic, bearer, key].flatMap((name) => ['--variable', name])];
  const env = { [basic]: 'Basic bWU6c3dvcmRmaXNo', [bearer]: 'Bearer swordfish', [key]: 'swordfish' };
  expect(await firelock(plan, { url: api.url, input: out, env })).toMatchObject({ code: 2, err: '' });
  expect((await imported(lines('salmon'))).out).toBe(out);
});

test('a line that stays a command keeps no password, and no header that logs in', async () => {
  const lines = [
    `curl -su 'me:swordfish' ${URL} | mail me`,
    `curl --user me:swordfish ${URL} ; true`,
    `cd / && curl -H 'Authorization: Bearer swordfish' ${URL}`,
    `cd / && curl --header="X-Api-Key: swordfish" ${URL}`,
    `wget --password=swordfish ${URL}`,
    'curl https://me:swordfish@example.com',
    `curl -u me:swordfish -u me:other ${URL}`,
  ];
  for (const args of [[], ['--queue', 'crontab'], ['--target-url', URL]]) {
    const { code, out, schedules, remarks } = await imported(lines, ...args);
    expect(code).toBe(1);
    expect(`${out}${remarks.join()}`).not.toContain('swordfish');
    expect(remarks.filter((remark) => remark.includes('put it into a file of the worker’s machine')).length).toBe(
      lines.length,
    );
    expect(schedules).toEqual([]);
  }
  const named = await imported(`TOKEN=swordfish\n@daily curl -H "Authorization: Bearer $TOKEN" ${URL}\n`);
  expect([named.code, named.schedules]).toEqual([1, []]);
  const elsewhere = [
    `curl -H "Authorization: Bearer $TOKEN" ${URL} | mail me`,
    `curl -u "me:$(cat /etc/me)" ${URL} | mail me`,
    `sudo -u www-data curl ${URL}`,
    `cd / && curl -H 'X-Trace: 5' ${URL}`,
  ];
  expect((await imported(elsewhere)).schedules.map(({ payload }) => payload?.command)).toEqual(elsewhere);
});

test('a line that is refused for something else keeps its password out of its comment, too', async () => {
  const { out, remarks } = await imported(`61 * * * * curl -u me:swordfish ${URL}\n`);
  expect(`${out}${remarks.join()}`).not.toContain('swordfish');
});

test('attempts of curl, and a wget that writes no file, are carried over', async () => {
  const { code, schedules, remarks } = await imported([
    `curl -s --retry 3 ${URL}`,
    `curl --retry 2 --retry-delay 30 ${URL}`,
    `wget -q -O - ${URL}?a=1`,
    `/usr/bin/wget -qO- -t 4 -T 20 --header='Accept: a/b' --post-data='x=1' ${URL} >/dev/null 2>&1`,
    `wget -q ${URL}`,
    `wget -O /dev/null --mirror ${URL}`,
    `wget -O /tmp/out ${URL}`,
  ]);
  expect(code).toBe(0);
  const target = { type: 'http', url: URL, method: 'GET' };
  expect(schedules.slice(0, 4)).toMatchObject([
    { target, retry: { maxAttempts: 4, minBackoffSeconds: 1, maxBackoffSeconds: 600 } },
    { target, retry: { maxAttempts: 3, minBackoffSeconds: 30, maxBackoffSeconds: 30 } },
    { target: { ...target, url: `${URL}?a=1` }, retry: { maxAttempts: 1 }, timeoutSeconds: 900 },
    {
      target: { method: 'POST', headers: { Accept: 'a/b' }, body: { template: 'x=1' } },
      retry: { maxAttempts: 4 },
      timeoutSeconds: 20,
    },
  ]);
  const follows = 'wget follows redirects, and tries 20 times to connect: firelock does neither';
  expect(remarks).toEqual([
    `-:3: ${follows}`,
    `-:4: ${follows}`,
    '-:5: its wget stays a command for a worker: wget writes a file, unless -O is - or /dev/null',
    '-:6: its wget stays a command for a worker: the option --mirror',
    '-:7: its wget stays a command for a worker: -o writes a file',
  ]);
});

/** Both send to a receiver in place of this host. */
const HOST = 'http://example.com';
const SENT_BY_BOTH = [
  `curl -s '${HOST}/a/b?c=d&e=\\%20'`,
  `curl -fsS -o /dev/null -G -d q=1 --data-raw 'r=@x' "${HOST}?p=0"`,
  `curl -sI ${HOST}/head > /dev/null 2>&1`,
  `curl -s -X POST ${HOST}`,
  `curl -s -X DELETE ${HOST}/a//b`,
  `curl -sd 'a=b c' -d "d=\\"\\\`\\$x\\n" --data-binary 'ü=€' ${HOST}/form`,
  `curl -s ${HOST}/json -XPUT --json '{"a":' --json ' 1e400,  "b": "it'"'"'s"}'`,
  `curl -s ${HOST} -X PATCH -H "content-type:application/merge-patch+json;charset=UTF-8" -d '{"\\u00e9": "10\\%"}'`,
  `curl -s ${HOST} --data-binary @- -H 'Content-Type: text/plain'%first \\% line%%third`,
  `curl -sm 20 ${HOST} -d @-%one%two`,
  `curl -s -d '' -H 'Cache-Control: no-cache' -- ${HOST}/empty`,
];

test('curl itself and the target that comes of it send the same, byte for byte', async (context) => {
  const version = spawnSync('curl', ['--version'], { encoding: 'utf8' });
  const [, major, minor] = /^curl (\d+)\.(\d+)/.exec(version.error === undefined ? version.stdout : '') ?? [];
  if (major === undefined || Number(major) * 1000 + Number(minor) < 7082)
    context.skip('needs curl 7.82 or later, which knows --json (Debian: apt-get install curl)');
  const { schedules, remarks } = await imported(SENT_BY_BOTH);
  expect(remarks).toEqual([]);
  // What the shell of cron would get.
  const commands = (await imported(SENT_BY_BOTH, '--queue', 'crontab')).schedules;
  const { url, arrivals } = await receive();
  const kind = httpTarget();
  for (const [index, { target }] of schedules.entries()) {
    const { command = '', stdin = '' } = commands[index]?.payload ?? {};
    const shell = spawn('/bin/sh', ['-c', command.replace(HOST, url)], {
      env: { PATH: process.env['PATH'], HOME: '/nowhere' },
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    shell.stdin.on('error', () => undefined).end(stdin);
    expect(await once(shell, 'close')).toEqual([0, null]);
    const { url: to = '', ...rest } = target as Partial<HttpTarget<string>>;
    await kind.deliver(targetAt(to.replace(HOST, url), rest), attemptOf(), never);
  }
  const sent = arrivals.map(({ method, url: path, headers, body }) => ({
    method,
    path,
    body,
    type: headers['content-type'],
    cache: headers['cache-control'],
  }));
  expect(sent).toHaveLength(2 * SENT_BY_BOTH.length);
  expect(sent.filter((_, index) => index % 2 === 1)).toEqual(sent.filter((_, index) => index % 2 === 0));
  expect(sent.filter(({ body }) => body !== '')).toHaveLength(2 * 5);
});
