import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { expect, test } from 'vitest';
import { firelock } from '../cli.ts';
import { sharedApi } from '../../api/api.ts';

const api = sharedApi();

interface Schedule {
  id: string;
  cron: string;
  timezone: string;
  payload: { command: string; stdin?: string; user?: string; env: Record<string, string> };
  [field: string]: unknown;
}

async function imported(input: string, ...args: string[]) {
  const { code, out, err } = await firelock(['import-crontab -', ...args], {
    input,
    zone: 'Europe/Berlin',
  });
  const { schedules } = parse(out) as { schedules: Schedule[] };
  const [, worker] = /^then start a worker .*: (firelock work .+)$/m.exec(err) ?? [];
  const remarks = err
    .replace(/^then start a worker .*\n/m, '')
    .trimEnd()
    .split('\n');
  return { code, out, schedules, remarks, worker };
}

/** What the server makes of the file. */
async function accepted(file: string): Promise<string> {
  const { code, err } = await firelock('plan - --no-json', { url: api.url, input: file });
  return `${code}${err}`;
}

test('lines of a user’s crontab become schedules that workers pull', async () => {
  const { code, out, schedules } = await imported(`# nightly
SHELL=/bin/bash
NAME = "a b"
0 2 * * *   /usr/bin/backup --all   # not a comment
CRON_TZ=America/New_York
*/15 9-17 * jan-mar MON-FRI\treport \\%d%first line%second\\%
RANDOM_DELAY=10
@daily X=1 tidy
CRON_TZ=
SHELL=/bin/sh
  @daily X=1 tidy
`);
  expect(code).toBe(0);
  expect(await accepted(out)).toBe('2');
  const common = { catchUp: 'skip', retry: { maxAttempts: 1 }, target: { type: 'pull', queue: 'crontab' } };
  const env = { SHELL: '/bin/bash', NAME: 'a b' };
  expect(schedules).toEqual([
    {
      ...common,
      id: expect.stringMatching(/^backup-[\da-f]{8}$/) as string,
      description: '/usr/bin/backup --all   # not a comment',
      cron: '0 2 * * *',
      timezone: 'Europe/Berlin',
      payload: { command: '/usr/bin/backup --all   # not a comment', env },
    },
    {
      ...common,
      id: expect.stringMatching(/^report-/) as string,
      description: 'report \\%d%first line%second\\%',
      cron: '*/15 9-17 * jan-mar MON-FRI',
      timezone: 'America/New_York',
      payload: { command: 'report %d', stdin: 'first line\nsecond%\n', env },
    },
    {
      ...common,
      id: expect.stringMatching(/^tidy-/) as string,
      description: 'X=1 tidy',
      cron: '@daily',
      timezone: 'America/New_York',
      jitterSeconds: 600,
      payload: { command: 'X=1 tidy', env },
    },
    {
      ...common,
      id: `${schedules[2]?.id ?? ''}-2`,
      description: 'X=1 tidy',
      cron: '@daily',
      timezone: 'Europe/Berlin',
      jitterSeconds: 600,
      payload: { command: 'X=1 tidy', env: { ...env, SHELL: '/bin/sh' } },
    },
  ]);
});

test('the input of a command ends with one line break, and is none if nothing follows the percent sign', async () => {
  const { schedules } = await imported('@daily a%x\n@daily b%x%\n@daily c%x%%\n@daily d%\n');
  expect(schedules.map(({ payload }) => payload.stdin)).toEqual(['x\n', 'x\n', 'x\n\n', undefined]);
});

test('the system’s lines name their user; the target and the set can be chosen', async () => {
  const url = 'https://example.com/run/{{scheduleId}}';
  const { schedules, out } = await imported(
    '-5 4 * * * root run-parts /etc/cron.daily\n',
    '--system',
    '--set',
    'etc',
    '--target-url',
    url,
  );
  expect(schedules).toMatchObject([
    {
      cron: '5 4 * * *',
      target: { type: 'http', url },
      payload: { user: 'root', command: 'run-parts /etc/cron.daily' },
    },
  ]);
  expect(parse(out)).toMatchObject({ set: 'etc' });
  expect(await accepted(out)).toBe('2');
  expect((await imported('0 0 * * * a', '--timezone', 'UTC', '--queue', 'q')).schedules).toMatchObject([
    { timezone: 'UTC', target: { type: 'pull', queue: 'q' } },
  ]);
  expect((await firelock(['import-crontab - --queue q --target-url', url], { input: '' })).code).toBe(64);
});

test('a day that both day fields choose follows cron’s rule, also for fields that begin with *', async () => {
  const expressions = [
    '0 0 13 * 5',
    '0 0 */2 * 1',
    '0 0 1 * */2',
    '0 0 */2 * */3',
    '0 0 * * 1',
    '0 0 */1 * 1',
    '0 0 1-31 * 1',
  ];
  const { schedules, out } = await imported(expressions.map((one) => `${one} x`).join('\n'));
  expect(schedules.map(({ cron }) => cron)).toEqual([
    '0 0 13 * 5',
    '0 0 */2 * +1',
    '0 0 1 * +*/2',
    '0 0 */2 * +*/3',
    '0 0 * * 1',
    '0 0 */1 * 1',
    '0 0 1-31 * 1',
  ]);
  expect(await accepted(out)).toBe('2');
});

test.each([
  [
    `0 9 28-31 * * [ "$(date -d tomorrow +\\%d)" = 01 ] && bill`,
    'the first of a month: cron: "0 9 L * *" without that test',
  ],
  [`0 9 28-31 * * [ \`date +\\%d -d "+1 day"\` -eq 1 ] && bill`, 'cron: "0 9 L * *" without that test'],
  ['0 9 * * 1 [ $(( $(date +\\%V) \\% 2 )) -eq 0 ] && pay', 'every: {n: 2, unit: week, from: DATE}'],
  ['0 9 * * 1 test $(expr $(date +\\%W) \\% 2) -eq 1 || pay', 'every: {n: 2, unit: week, from: DATE}'],
  ['0 9 * * * [ $(( $(date +\\%s) / 86400 \\% 2 )) -eq 0 ] && feed', 'every: {n: 2, unit: day, from: DATE}'],
  ['0 9 * * * [ $(date +\\%u) -lt 6 ] && report', 'cron: "0 9 * * MON-FRI"'],
  ['0 9 * * * [ $(date +\\%u) -gt 5 ] || report', 'cron: "0 9 * * MON-FRI"'],
  ['0 9 * * * if [[ $(/bin/date +\\%a) != Sun ]]; then report; fi', 'cron: "0 9 * * MON-SAT"'],
  ['0 4 8-14 * * test $(date +\\%u) -eq 6 && scrub', 'cron: "0 4 * * 6#2"'],
  ['0 4 1-7 * * /usr/bin/test "$(date +\\%w)" = 0 && scrub', 'cron: "0 4 * * 0#1"'],
  ['0 4 1,15 * * [ `date +\\%u` -eq 7 ] && scrub', 'cron: "0 4 1,15 * +SUN"'],
  ['0 4 22-28 * * if [ -x /sbin/x ] && [ $(date +\\%a) = Tue ]; then x; fi', 'cron: "0 4 * * 2#4"'],
  ['0 4 * * 0 if [ -x /sbin/x ] && [ $(date +\\%d) -le 7 ]; then x; fi', 'cron: "0 4 * * 0#1"'],
  ['0 4 * * * [ $(date +\\%d) -eq 1 ] && bill', 'cron: "0 4 1 * *"'],
  ['0 4 1-15 * * [ $(date +\\%e) -gt 13 ] && bill', 'cron: "0 4 14,15 * *"'],
  ['0 4 * * 1-5 [ $(date +\\%d) -eq 13 ] && bill', 'cron: "0 4 13 * +1-5"'],
  ['0 4 * * * [ $(expr $(date +\\%u) + 1) -eq 2 ] && bill', 'its command asks for the day of the week'],
  ['0 9 * * 1 [ $(date +\\%d) -le 7 ] && report', 'cron: "0 9 * * 1#1"'],
  [
    '0 9 1-7 * 1 report',
    'each day 1 of the week, as cron does; if only that weekday among these days is meant, write cron: "0 9 * * 1#1"',
  ],
  ['0 9 15-21 * tue report', 'write cron: "0 9 * * tue#3"'],
])('%s is carried over as it is, with a hint that the server accepts', async (line, hint) => {
  const { code, out, schedules, remarks, worker } = await imported(line);
  expect(worker).toBe('firelock work crontab');
  expect([code, remarks]).toEqual([0, [expect.stringContaining(hint)]]);
  expect(out).toContain(`  # line 1: ${remarks[0]?.split(':1: ')[1] ?? ''}\n`);
  const [, , , , , ...command] = line.split(' ');
  expect(schedules[0]?.payload.command).toBe(command.join(' ').replaceAll('\\%', '%'));
  const [, cron] = /cron: "(.*?)"/.exec(hint) ?? [];
  if (cron !== undefined) expect((await firelock(['preview', cron], { url: api.url })).code).toBe(0);
});

test.each([
  '0 9 * * * tar cf /b/$(date +\\%d).tar /home && [ -s /b/x ] && mail',
  '0 9 * * * [ -f /etc/on ] && backup $(date +\\%u)',
  '0 9 * * * [ "$(date -d yesterday +\\%d)" = 01 ] && bill',
  '0 9 13 * 5 report',
  '0 9 1-7 * 1-5 report',
  '@daily [ -f x ] && report',
])('%s gets no hint', async (line) => {
  expect((await imported(line)).remarks).toEqual(['']);
});

test('lines of /etc/cron.d name their user by themselves, and so does a copy of it', async () => {
  const folder = join(await mkdtemp(join(tmpdir(), 'firelock-')), 'etc', 'cron.d');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tidy'), '5 4 * * * www-data tidy --all\n');
  const { code, out } = await firelock(['import-crontab', join(folder, 'tidy')]);
  expect([code, out]).toEqual([0, expect.stringContaining('user: www-data') as string]);
});

test('a file of another kind than was said is not read as if it were one', async () => {
  const users = await imported(
    '5 4 * * * root tidy\n5 4 * * * www-data tidy --all\n@daily 10 weekly tidy\n5 4 * * * * tidy\n',
  );
  expect(users.code).toBe(1);
  expect(users.remarks).toEqual([
    '-:1: not carried over: its command begins with root: --system says that lines name their user: 5 4 * * * root tidy',
    '-:2: its command begins with www-data, which is the name of an account: --system, if lines name their user',
    expect.stringContaining('-:3: not carried over: its command begins with “10”: an anacrontab has a delay'),
    expect.stringContaining('-:4: not carried over: its command begins with “*”: cron has five fields'),
  ]);
  const system = await imported('5 4 * * * /usr/bin/tidy --all\n5 4 * * * * root tidy\n', '--system');
  expect(system.remarks).toEqual([
    expect.stringContaining('“/usr/bin/tidy” is no name of an account: in this file lines do not name their user'),
    expect.stringContaining('“*” is no name of an account'),
  ]);
});

test('a file in another encoding is refused with its line, and read where that is named', async () => {
  const latin = Buffer.from('@daily tidy\n@daily gr\xfc\xdfe\n', 'latin1');
  const refused = await firelock('import-crontab -', { input: latin });
  expect([refused.code, refused.out, refused.err]).toEqual([
    1,
    '',
    'firelock: -:2: not in utf-8: --encoding says in which it is, as latin1\n',
  ]);
  const named = await firelock('import-crontab - --encoding latin1', { input: latin });
  expect([named.code, named.out]).toEqual([0, expect.stringContaining('grüße') as string]);
  expect((await firelock('import-crontab - --encoding klingon', { input: latin })).code).toBe(64);
  expect((await imported('\ufeff@daily tidy\n')).schedules).toMatchObject([{ payload: { command: 'tidy' } }]);
});

test('a line that cannot be carried over is named with the reason, and stands in the file as a comment', async () => {
  const { code, out, schedules, remarks } = await imported(`@reboot start
0 0 30 2 * never
61 * * * * a
* * * * *
5/15 * * * * b
H 0 * * * c
0 0 L * * d
*,5 * * * * e
@every_minute f
RANDOM_DELAY=soon
MAILTO=me@example.com
TZ=Asia/Tokyo
0 0 * * * fine
CRON_TZ=Mars/Olympus
0 0 * * * g
`);
  expect(code).toBe(1);
  expect(schedules.map(({ payload }) => payload.command)).toEqual(['fine']);
  expect(schedules[0]?.timezone).toBe('Europe/Berlin');
  const lost = remarks.filter((remark) => remark.includes('not carried over')).map((remark) => remark.split(':')[1]);
  expect(lost).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '15']);
  expect(remarks).toContainEqual(
    '-:1: not carried over: @reboot: firelock does not see the machine boot; fire the schedule from a boot script: @reboot start',
  );
  expect(remarks).toContainEqual('-:2: not carried over: it never runs: 0 0 30 2 * never');
  expect(remarks).toContainEqual(expect.stringMatching(/^-:11: MAILTO: firelock sends no mail/));
  expect(remarks).toContainEqual(expect.stringMatching(/^-:12: TZ is the zone of the commands/));
  for (const remark of remarks) expect(out).toContain(`  # line ${remark.replace(/^-:(\d+): /, '$1: ')}\n`);
});

test('CronJobs of Kubernetes become schedules, from several documents and lists', async () => {
  const job = (name: string, spec: string) => `apiVersion: batch/v1
kind: CronJob
metadata: {name: ${name}, namespace: shop}
spec:
${spec.replace(/^/gm, '  ')}
  jobTemplate:
    spec:
      backoffLimit: 2
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: "busybox:1", command: [date]}]}}
`;
  const manifests = [
    job(
      'report',
      'schedule: "5/15 8 ? * MON"\ntimeZone: Europe/Paris\nconcurrencyPolicy: Forbid\nstartingDeadlineSeconds: 200',
    ),
    job('paused', 'schedule: "@every 1h30m"\nsuspend: true\nconcurrencyPolicy: Replace\nsuccessfulJobsHistoryLimit: 3'),
    'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {}\n',
    job('odd', 'schedule: "0 0 L * *"'),
    `apiVersion: v1\nkind: List\nitems:\n${job('listed', 'schedule: "CRON_TZ=Asia/Tokyo 0 0 * * *"').replace(/^/gm, '    ').replace('    api', '  - api')}`,
  ].join('---\n');
  const { code, out, schedules, remarks } = await imported(manifests);
  expect(code).toBe(1);
  const retry = { maxAttempts: 3, minBackoffSeconds: 10, maxBackoffSeconds: 360 };
  expect(schedules).toMatchObject([
    {
      id: 'shop.report',
      cron: '5-59/15 8 * * MON',
      timezone: 'Europe/Paris',
      overlap: 'skip',
      graceSeconds: 200,
      expiresAfterSeconds: 200,
      catchUp: 'skip',
      retry,
    },
    { id: 'shop.paused', everySeconds: 5400, enabled: false, overlap: 'replace', catchUp: 'latest' },
    { id: 'shop.listed', cron: '0 0 * * *', timezone: 'Asia/Tokyo', overlap: 'allow' },
  ]);
  expect(schedules[0]?.payload).toMatchObject({
    namespace: 'shop',
    name: 'report',
    job: { backoffLimit: 0, template: { spec: { containers: [{ image: 'busybox:1', command: ['date'] }] } } },
  });
  expect(remarks).toEqual([
    expect.stringMatching(/^-:14: CronJob paused: successfulJobsHistoryLimit has no meaning here/),
    '-:27: Service web: skipped, since it is no CronJob',
    '-:32: not carried over: Kubernetes does not understand “L”',
  ]);
  expect(await accepted(out)).toBe('2');
});

const JOB = {
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } } },
};
const cronJob = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { name, ...metadata },
  spec: { schedule: '20 6 * * *', jobTemplate: JOB, ...spec },
});

test('a CronJobList, whose items have no kind, and JSON in one line are read; null is absent', async () => {
  const {
    kind: _kind,
    apiVersion: _apiVersion,
    ...item
  } = cronJob('a', {
    ...{ timeZone: null, suspend: null, concurrencyPolicy: null, startingDeadlineSeconds: null },
    ...{ successfulJobsHistoryLimit: null, jobTemplate: { spec: { ...JOB.spec, backoffLimit: null } } },
  });
  const list = { items: [item], apiVersion: 'batch/v1', kind: 'CronJobList' };
  const { code, schedules, remarks, out, worker } = await imported(JSON.stringify(list), '--queue', 'k8s');
  expect(worker).toBe('firelock work k8s --exec PROGRAM');
  expect([code, remarks]).toEqual([0, ['']]);
  expect(schedules).toMatchObject([
    { id: 'default.a', timezone: 'UTC', overlap: 'allow', catchUp: 'latest', retry: { maxAttempts: 7 } },
  ]);
  expect(schedules[0]?.payload).toMatchObject({ job: { backoffLimit: 0 } });
  expect(await accepted(out)).toBe('2');
});

test('labels of a CronJob are those of the schedule, and what of its metadata has no place is named', async () => {
  const labels = { team: 'billing', 'app.kubernetes.io/name': 'x', ['k'.repeat(300)]: 'y' };
  const annotations = { 'example.com/owner': 'me' };
  const { code, schedules, remarks, out } = await imported(
    JSON.stringify(
      cronJob('a', { jobTemplate: { ...JOB, metadata: { labels: { a: 'b' } } } }, { labels, annotations }),
    ),
  );
  expect([code, schedules[0]?.['labels']]).toEqual([0, { team: 'billing', 'app.kubernetes.io/name': 'x' }]);
  expect(remarks).toEqual([
    `-:1: CronJob a: not carried over from its metadata: annotation example.com/owner, label ${'k'.repeat(300)}`,
    '-:1: CronJob a: the metadata of its jobTemplate are not carried over',
  ]);
  expect(await accepted(out)).toBe('2');
});

test.each([
  [
    'kind: CronJob\nmetadata: {name: a}\nspec:\n{{- if .Values.on }}\n  schedule: "@daily"\n{{- end }}\n',
    /^-:4: not carried over: it is a template/,
  ],
  [JSON.stringify(cronJob('a', { schedule: '{{ .Values.schedule }}' })), /it is a template that is not rendered/],
  [
    JSON.stringify(cronJob('a', { startingDeadlineSeconds: 99_999_999 })),
    /firelock refuses graceSeconds: must be at most/,
  ],
  [JSON.stringify(cronJob('n'.repeat(140))), /firelock refuses id: must be 1 to 128/],
  [JSON.stringify(cronJob('a', { schedule: '@every 90ms' })), /@every 90ms is not a number of whole seconds/],
  ['apiVersion: v1\nkind: Service\nmetadata: {name: web}\n', /there is no CronJob in it/],
])('%j ends with exit code 1 and the reason', async (manifest, reason) => {
  const { code, schedules, remarks } = await imported(manifest);
  expect([code, schedules]).toEqual([1, []]);
  expect(remarks.join('\n')).toMatch(reason);
});
