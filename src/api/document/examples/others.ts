import type { Examples } from './example.ts';

export const OTHER_EXAMPLES: Readonly<Record<string, Examples>> = {
  putCalendar: {
    holidays: {
      summary: 'Days, and a range of days',
      value: { description: 'Public holidays in Berlin', dates: ['2026-12-25', '2026-12-31/2027-01-01'] },
    },
  },
  putLimit: {
    limit: {
      summary: 'Three runs at once',
      value: { description: 'Connections to the warehouse', maxRunning: 3 },
    },
  },
  setMaintenance: {
    on: { summary: 'Begin', value: { on: true, reason: 'The warehouse database moves' } },
    hold: { summary: 'Begin, and hand nothing off either', value: { on: true, dispatch: 'hold' } },
    off: { summary: 'End', value: { on: false } },
  },
  previewFires: {
    cron: { summary: 'A cron expression', value: { cron: '30 2 * * *', timezone: 'Europe/Berlin' } },
    list: {
      summary: 'Several cron expressions',
      value: { cron: ['0 9 * * MON-FRI', '0 11 * * SAT'], timezone: 'Europe/Berlin', count: 5 },
    },
    interval: { summary: 'An interval', value: { everySeconds: 900 } },
    excluded: {
      summary: 'Without some days',
      value: { cron: '0 2 * * *', exclude: { dates: ['2026-12-24/2027-01-02'] } },
    },
  },
};
