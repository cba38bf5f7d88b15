import { useState } from 'preact/hooks';
import { ApiProblem, Away, type Fault } from '../api/http.ts';
import { toast } from './toasts.ts';

export interface Acting {
  /** The daemon has not answered yet. */
  isBusy: boolean;
  /** What it found wrong with the last try; to be shown beside the fields. */
  faults: readonly Fault[];
  /** Why the last try was refused; null: it was not. */
  refusal: string | null;
  /** Does it, and says so; where the daemon refuses it, says why. Whether it was done. */
  act: (what: () => Promise<string | null>) => Promise<boolean>;
}

/**
 * Of a form or a button: one call that changes something. What `act` is given returns what to say afterwards; null:
 * nothing. `quietly`: a refusal is shown by the form, and not said again in a corner.
 */
export function useAct({ quietly = false } = {}): Acting {
  const [state, setState] = useState<Omit<Acting, 'act'>>({ isBusy: false, faults: [], refusal: null });
  const act = async (what: () => Promise<string | null>): Promise<boolean> => {
    setState({ isBusy: true, faults: [], refusal: null });
    try {
      const said = await what();
      setState({ isBusy: false, faults: [], refusal: null });
      if (said !== null) toast('done', said);
      return true;
    } catch (error) {
      if (!(error instanceof ApiProblem || error instanceof Away)) throw error;
      const faults = error instanceof ApiProblem ? error.faults : [];
      setState({ isBusy: false, faults, refusal: error.message });
      if (!quietly) toast('failed', error.message);
      return false;
    }
  };
  return { ...state, act };
}
