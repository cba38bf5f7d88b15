/** A field of the form with a default that most schedules keep. */
export interface Policy {
  name: string;
  label: string;
  hint: string;
  /** Absent: a number or a text. The first is the default. */
  options?: readonly (readonly [value: string, text: string])[];
  /** What holds if nothing is typed. */
  otherwise?: string;
}

export const LATENESS: readonly Policy[] = [
  {
    name: 'catchUp',
    label: 'Fires that were missed',
    hint: 'A fire is missed if no instance could plan it within the grace below.',
    options: [
      ['latest', 'latest: one run for all of them'],
      ['skip', 'skip: none, but it is recorded'],
      ['all', 'all: each of them'],
    ],
  },
  {
    name: 'graceSeconds',
    label: 'Grace, seconds',
    hint: 'Up to that late a fire is on time.',
    otherwise: '60',
  },
  {
    name: 'catchUpLimit',
    label: 'At most',
    hint: 'Under all: that many of an outage, the newest.',
    otherwise: '100',
  },
  {
    name: 'overlap',
    label: 'While an earlier run is active',
    hint: 'Active: between its first attempt and its end.',
    options: [
      ['allow', 'allow: start another'],
      ['skip', 'skip: record it as skipped'],
      ['queue', 'queue: the newest waits'],
      ['replace', 'replace: cancel the earlier one'],
    ],
  },
  {
    name: 'expiresAfterSeconds',
    label: 'Expires after, seconds',
    hint: 'A run that has waited for that long does not begin any more.',
    otherwise: 'never',
  },
  {
    name: 'jitterSeconds',
    label: 'Jitter, seconds',
    hint: 'Each fire is put off by a fixed part of that, so that not all schedules fire at once.',
    otherwise: '0',
  },
];

export const HANDOFF: readonly Policy[] = [
  {
    name: 'delivery',
    label: 'After a call whose answer never came',
    hint: 'It may have arrived. The run id is the same each time, so that the target can tell.',
    options: [
      ['atLeastOnce', 'at least once: call again'],
      ['atMostOnce', 'at most once: never again'],
    ],
  },
  {
    name: 'completion',
    label: 'A 2xx means',
    hint: 'A callback run goes on until somebody calls /complete.',
    options: [
      ['response', 'response: it is done'],
      ['callback', 'callback: it was accepted'],
    ],
  },
  {
    name: 'completionTimeoutSeconds',
    label: 'Silence until a callback run is lost, seconds',
    hint: 'Without /heartbeat or /complete.',
    otherwise: '3600',
  },
  {
    name: 'timeoutSeconds',
    label: 'One attempt takes at most, seconds',
    hint: 'From name to last byte.',
    otherwise: '30',
  },
  {
    name: 'retry/maxAttempts',
    label: 'Attempts',
    hint: 'Failures after which it is given up.',
    otherwise: '5',
  },
  {
    name: 'retry/minBackoffSeconds',
    label: 'First wait, seconds',
    hint: 'It doubles each time.',
    otherwise: '10',
  },
  {
    name: 'retry/maxBackoffSeconds',
    label: 'Longest wait, seconds',
    hint: 'It grows no further.',
    otherwise: '3600',
  },
  {
    name: 'priority',
    label: 'Priority',
    hint: 'Which of the waiting runs goes first.',
    options: [
      ['normal', 'normal'],
      ['high', 'high'],
      ['low', 'low'],
    ],
  },
  {
    name: 'limit',
    label: 'Limit',
    hint: 'Its id: how many runs that name it may be under way at once.',
    otherwise: 'none',
  },
];

export const WATCH: readonly Policy[] = [
  {
    name: 'pauseAfterFailures',
    label: 'Pause after failures',
    hint: 'That many in a row pause it.',
    otherwise: 'never',
  },
  {
    name: 'successWithinSeconds',
    label: 'Late without a success for, seconds',
    hint: 'It is said to be late then.',
    otherwise: 'never',
  },
  {
    name: 'expect/startWithinSeconds',
    label: 'A run begins within, seconds',
    hint: 'Of the moment at which it is due; otherwise it is marked as unmet.',
    otherwise: 'no bound',
  },
  {
    name: 'expect/finishWithinSeconds',
    label: 'A run ends within, seconds',
    hint: 'Of the beginning of its first attempt; otherwise it is marked as unmet.',
    otherwise: 'no bound',
  },
  {
    name: 'expect/atLeastSeconds',
    label: 'A success takes at least, seconds',
    hint: 'From that beginning; one that comes sooner is marked as unmet.',
    otherwise: 'no bound',
  },
  {
    name: 'expect/result',
    label: 'Its result has',
    hint: 'JSON, such as [{"pointer": "/rows", "min": 1}], or with "max" or "equals"; otherwise it is marked as unmet.',
    otherwise: 'anything',
  },
];

/** Of the API's faults, those that have a field here. */
export const POLICY_PATHS = [...LATENESS, ...HANDOFF, ...WATCH].map(({ name }) => `/${name}`);
