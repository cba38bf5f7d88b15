import { useId } from 'preact/hooks';
import { get } from '../../api/http.ts';
import type { Connection, ListConnectionsResponse } from '../../../../clients/typescript/src/generated/types.gen.ts';
import { usePoll } from '../../state/poll.ts';
import { TextField } from '../forms/draft-fields.tsx';
import type { HttpDraft } from './http-draft.ts';
import type { HttpPart } from './http-part.ts';

const MAX_ID = 128;
const SELDOM = { everyMs: 60_000, keep: true };

/** Those whose id or description contains what is typed; at first, the first ones of all. */
export function useConnections({ connection }: HttpDraft): readonly Connection[] {
  const q = connection.trim().slice(0, MAX_ID);
  const found = usePoll(
    `connections ${q}`,
    (signal) => get<ListConnectionsResponse>('/connections', { q, limit: 100 }, signal),
    SELDOM,
  );
  return found.data?.items ?? [];
}

export function ConnectionField({ part, connections }: { part: HttpPart; connections: readonly Connection[] }) {
  const list = useId();
  return (
    <>
      <TextField
        {...{ part, path: '/target/connection', name: 'connection', list }}
        label="Connection"
        hint="The id of a connection, which says where the system is and logs in. Empty: none."
      />
      <datalist id={list}>
        {connections.map(({ id, description }) => (
          <option key={id} value={id}>
            {description}
          </option>
        ))}
      </datalist>
    </>
  );
}
