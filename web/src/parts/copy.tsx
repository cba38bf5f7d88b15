import { toast } from '../state/toasts.ts';

/** Puts a text into the clipboard. */
export function Copy({ text, children = 'Copy' }: { text: () => string; children?: string }) {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      toast('done', 'Copied.');
    } catch {
      // Without TLS browsers give no clipboard, but on this machine itself.
      toast('failed', 'This browser does not let the page copy. Select the text and copy it yourself.');
    }
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {children}
    </button>
  );
}
