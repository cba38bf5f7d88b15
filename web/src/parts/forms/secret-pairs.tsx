import type { Fault } from '../../api/http.ts';
import { type SecretDraft, isOfPairs } from './pair.ts';
import { Pairs } from './pairs.tsx';

interface Props {
  label: string;
  hint: string;
  path: string;
  draft: SecretDraft;
  faults: readonly Fault[];
  onChange: (draft: SecretDraft) => void;
}

export const OF_FILES = 'A file of FIRELOCK_SECRETS_DIR. Whatever writes the file changes the value.';

/** Secret values by name, and below them those that stand in files. */
export function SecretPairs({ label, hint, path, draft, faults, onChange }: Props) {
  const isOfFiles = (fault: Fault) => isOfPairs(fault, path, draft.files);
  return (
    <>
      <Pairs
        {...{ label, hint, path, pairs: draft.values }}
        words={['name', 'value']}
        faults={faults.filter((fault) => !isOfFiles(fault))}
        onChange={(values) => onChange({ ...draft, values })}
      />
      <Pairs
        label={`${label} with values from files`}
        hint={OF_FILES}
        {...{ path, pairs: draft.files }}
        words={['name', 'name of the file']}
        faults={faults.filter(isOfFiles)}
        onChange={(files) => onChange({ ...draft, files })}
      />
    </>
  );
}
