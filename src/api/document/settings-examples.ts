/** Examples of one operation, each under a name that tells them apart. */
export type Examples = Readonly<Record<string, { summary: string; value: object | string }>>;

export const CALENDARS: Examples = {
  holidays: {
    summary: 'Days, and a range of days',
    value: { description: 'Public holidays in Berlin', dates: ['2026-12-25', '2026-12-31/2027-01-01'] },
  },
};

export const LIMITS: Examples = {
  limit: {
    summary: 'Three runs at once',
    value: { description: 'Connections to the warehouse', maxRunning: 3 },
  },
};

export const CONNECTIONS: Examples = {
  oauth2: {
    summary: 'A client that fetches its tokens',
    value: {
      url: 'https://api.example.com/v2',
      auth: {
        type: 'oauth2',
        tokenUrl: 'https://login.example.com/oauth2/token',
        clientId: 'firelock',
        clientSecret: 'the-secret-of-the-client',
      },
    },
  },
  token: {
    summary: 'A token, and a header',
    value: {
      description: 'The GitHub API',
      url: 'https://api.github.com',
      headers: { 'X-GitHub-Api-Version': '2022-11-28' },
      auth: { type: 'bearer', token: 'ghp_example' },
    },
  },
};

export const NOTIFIERS: Examples = {
  slack: {
    summary: 'What breaks in billing, to a channel of Slack',
    value: {
      description: 'The channel of the billing team',
      on: ['failed', 'late', 'missed', 'paused', 'error'],
      filter: { ids: ['billing.*'] },
      channel: {
        type: 'slack',
        target: { type: 'http', url: 'https://hooks.slack.com/services/T000/B000/example' },
      },
    },
  },
  pagerduty: {
    summary: 'An incident of PagerDuty for each episode',
    value: {
      filter: { label: ['oncall:yes'] },
      channel: { type: 'pagerduty', routingKey: 'R0000000000000000000000000000000' },
      remindSeconds: null,
    },
  },
};
