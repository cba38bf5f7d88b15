import { MY_ZONE } from '../../state/zone.ts';
import { type Draft, EMPTY } from './draft.ts';

export interface Template {
  title: string;
  text: string;
  draft: Draft;
}

/** Where the README's target listens. */
const URL_HERE = 'http://127.0.0.1:9000/beat';

/** What a new schedule can begin with. Each can be created as it is. */
export const TEMPLATES: readonly Template[] = [
  {
    title: 'Every minute, call a URL',
    text: 'The way to see it work: a POST a minute.',
    draft: {
      ...EMPTY,
      id: 'every-minute',
      cron: ['* * * * *'],
      url: URL_HERE,
      payload: '{\n  "hello": "world"\n}',
    },
  },
  {
    title: 'Every night, never two at once',
    text: `At 2 o'clock in ${MY_ZONE}. While a run is still going, no other one starts.`,
    draft: {
      ...EMPTY,
      ...{ id: 'nightly', cron: ['0 2 * * *'], timezone: MY_ZONE, url: 'http://127.0.0.1:9000/nightly' },
      policies: { overlap: 'skip', 'retry/maxAttempts': '10' },
    },
  },
  {
    title: 'Every five minutes, for workers that pull',
    text: 'Nothing is called: your workers ask for the runs of a queue.',
    draft: {
      ...EMPTY,
      ...{ id: 'pulled', kind: 'everySeconds', everySeconds: '300', targetType: 'pull', queue: 'work' },
    },
  },
  {
    title: 'When another schedule fails',
    text: 'Calls a URL with the run that failed: a notification.',
    draft: {
      ...EMPTY,
      ...{ id: 'on-failure', kind: 'after', afterId: '*', afterOn: ['failed', 'unknown', 'abandoned'] },
      url: 'http://127.0.0.1:9000/alarm',
    },
  },
];

/** What answers the templates' URL, to be copied into a terminal. */
export const TARGET_COMMAND =
  'node -e \'require("http").createServer((q, s) => { q.on("data", (d) => console.log(String(d))); s.end("{}") }).listen(9000)\'';
