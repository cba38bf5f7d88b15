import { useState } from 'preact/hooks';
import { ApiProblem, call, get } from '../api/http.ts';
import type { Caller } from '../../../clients/typescript/src/generated/types.gen.ts';
import { Field } from '../parts/forms/field.tsx';
import { keepLasting, keepToken, me, mustLogIn } from '../state/session.ts';

/** Null: the daemon knows it, and the caller is logged in. `lasts`: by a cookie, which other tabs have, too. */
async function faultOf(typed: string, lasts: boolean): Promise<string | null> {
  // What is no token cannot be sent, either.
  if (!/^[\x21-\x7e]+$/.test(typed)) return 'A token consists of letters, digits and underscores.';
  keepToken(typed);
  try {
    me.value = await (lasts ? call<Caller>('POST', '/session') : get<Caller>('/me'));
    if (lasts) keepToken(null);
    keepLasting(lasts);
    mustLogIn.value = false;
    return null;
  } catch (error) {
    keepToken(null);
    if (error instanceof ApiProblem && error.status === 401)
      return 'firelock does not know this token, or it has ended.';
    return error instanceof Error ? error.message : 'This did not work.';
  }
}

/** Takes a token, and asks the daemon whose it is. It is kept in this tab alone, unless the person wants it to last. */
export function LogIn() {
  const [typed, setTyped] = useState('');
  const [fault, setFault] = useState('');
  const [lasts, setLasts] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const logIn = async (): Promise<void> => {
    setAsking(true);
    setFault((await faultOf(typed.trim(), lasts)) ?? '');
    setAsking(false);
  };
  return (
    <main id="main" class="log-in" tabIndex={-1}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void logIn();
        }}
      >
        <h1>Log in to firelock</h1>
        <Field
          label="Token"
          path="/token"
          faults={fault === '' ? [] : [{ path: '/token', message: fault }]}
          hint="firelock token create NAME --role viewer makes one. It is kept until you close this tab, unless you say otherwise."
        >
          {(props) => (
            <input
              {...props}
              type="password"
              autocomplete="off"
              spellcheck={false}
              required
              autofocus
              value={typed}
              onInput={({ currentTarget }) => {
                setTyped(currentTarget.value);
              }}
            />
          )}
        </Field>
        <label>
          <input
            type="checkbox"
            checked={lasts}
            onChange={({ currentTarget }) => {
              setLasts(currentTarget.checked);
            }}
          />{' '}
          Keep me logged in, in all tabs, until I log out or am away for twelve hours
        </label>
        <button type="submit" class="main" disabled={isAsking || typed.trim() === ''}>
          Log in
        </button>
      </form>
    </main>
  );
}
