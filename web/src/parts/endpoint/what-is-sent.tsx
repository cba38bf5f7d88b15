import type { Sent } from './sent.ts';

const SHOWN = 20_000;

/** The request of the next run, as it would be sent. */
export function WhatIsSent({ sent: { method, url, headers, own, body, unknown } }: { sent: Sent }) {
  return (
    <section class="field" aria-labelledby="what-is-sent">
      <h3 id="what-is-sent">What is sent</h3>
      <pre class="user sent" aria-label="The request" tabIndex={0}>
        {[`${method} ${url}`, ...headers.map(([name, value]) => `${name}: ${value}`)].join('\n')}
        {body !== null && `\n\n${body.slice(0, SHOWN)}`}
      </pre>
      <div class="note">
        {unknown !== null && <p class="fault">{unknown}</p>}
        {unknown === null && body === null && <p>No body: a {method} carries none.</p>}
        {body === '' && <p>The body is empty.</p>}
        {body !== null && body.length > SHOWN && <p>and {body.length - SHOWN} more characters.</p>}
        <p>
          For the first attempt of a sample run; firelock adds <span class="mono">{own.join(', ')}</span>.
        </p>
      </div>
    </section>
  );
}
