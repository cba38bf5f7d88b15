import type { FormPart } from '../forms/draft-fields.tsx';
import type { HttpDraft } from './http-draft.ts';

/** What the fields of an HTTP target are given. */
export type HttpPart = FormPart<HttpDraft>;
