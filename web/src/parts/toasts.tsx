import { dismiss, toasts } from '../state/toasts.ts';

/** What was done, or could not be; each goes by itself. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, kind, text }) => (
        <div key={id} class={`toast ${kind}`}>
          <span>{text}</span>
          <button
            type="button"
            class="plain"
            aria-label="Dismiss"
            onClick={() => {
              dismiss(id);
            }}
          >
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
