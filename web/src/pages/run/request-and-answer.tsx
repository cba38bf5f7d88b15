import type { WholeRun } from '../../../../client/src/generated/types.gen.ts';
import { textOf } from '../../api/json.ts';
import { Copy } from '../../parts/copy.tsx';
import { JsonView } from '../../parts/json-view.tsx';

/** Where the run goes, and what goes with it. */
export function Request({ run: { target, payload, queue } }: { run: WholeRun }) {
  return (
    <section class="card stack">
      <div class="bar end">
        <h2 class="first">Request</h2>
        <Copy text={() => textOf(payload)}>Copy the payload</Copy>
      </div>
      {target?.type === 'http' && (
        <p>
          <code class="user">
            {target.method} {target.url}
          </code>
        </p>
      )}
      {queue !== null && (
        <p>
          Pulled by workers from the queue <code class="user">{queue}</code>
        </p>
      )}
      {target === null && <p class="quiet">Its target cannot be read.</p>}
      {textOf(payload) === 'null' ? (
        <p class="quiet">It has no payload.</p>
      ) : (
        <JsonView label="Payload" value={payload} />
      )}
    </section>
  );
}

const KINDS = {
  http: 'The target answered that it does not take it',
  timeout: 'No answer came in time',
  network: 'The target could not be reached',
  blocked: 'firelock may not call this address',
  expired: 'Its completion was not reported in time',
  dependency: 'A run that it depends on did not succeed',
  reported: 'The target reported that it failed',
};

/** What came back, or why nothing did. */
export function Answer({ run: { result, error, executionId } }: { run: WholeRun }) {
  return (
    <section class="card stack">
      <h2>Answer</h2>
      {error !== null && (
        <p class="refusal">
          {KINDS[error.kind]}: <span class="user">{error.message}</span>
        </p>
      )}
      {executionId !== null && (
        <p>
          The target calls it <code class="user">{executionId}</code>
        </p>
      )}
      {result === null ? (
        error === null && <p class="quiet">There is none yet.</p>
      ) : (
        <>
          <p>{result.statusCode === null ? 'Reported with the end:' : `Status ${result.statusCode}:`}</p>
          {result.body === '' ? (
            <p class="quiet">The body is empty.</p>
          ) : (
            <JsonView label="Body of the answer" value={result.body} />
          )}
        </>
      )}
    </section>
  );
}
