import type { Lines } from '../handlers.ts';

export const TRACE_LINES = {
  traceCollectorAway: (logger, { error }) =>
    logger.warn(
      { reason: error },
      'the trace collector does not take spans; fires go on, and traces have gaps if it takes long',
    ),
  traceCollectorBack: (logger) => logger.info('the trace collector takes spans again'),
} satisfies Lines;
