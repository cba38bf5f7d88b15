import type { FormPart } from '../forms/draft-fields.tsx';
import type { HttpDraft } from './http-draft.ts';

export const KEPT = 'What is stored is never shown again: *** stands for it, and keeps it.';

/** What the fields of an HTTP target are given. */
export type HttpPart = FormPart<HttpDraft>;
