import { type Instant, isoInstant } from '../instant.ts';

/** The names that a template may use; every attempt has a value for each. */
export interface TemplateValues {
  runId: string;
  runName: string | null;
  scheduleId: string | null;
  scheduledFor: Instant;
  attempt: number;
}

export const TEMPLATE_NAMES = ['runId', 'runName', 'scheduleId', 'scheduledFor', 'attempt'] as const;
type TemplateName = (typeof TEMPLATE_NAMES)[number];
export const KNOWN_TEMPLATES = TEMPLATE_NAMES.map((name) => `{{${name}}}`).join(' ');

export function hasTemplate(text: string): boolean {
  return text.includes('{{');
}

/** The unknown names in `{{…}}`, in their order. */
export function findUnknownTemplates(text: string): string[] {
  const unknown: string[] = [];
  replaceTemplates(text, (name, whole) => {
    if (!isTemplateName(name)) unknown.push(name);
    return whole;
  });
  return unknown;
}

/** What is wrong with the templates of a text; null: nothing. Of a secret text no name is said, which is part of it. */
export function templateFault(text: string, isSecret = false): string | null {
  const unknown = findUnknownTemplates(text);
  if (unknown.length === 0) return isNeverClosed(text) ? NEVER_CLOSED : null;
  const named = isSecret ? [] : unknown.slice(0, 5).map((name) => `{{${name}}}`);
  return `has ${['an unknown template', ...named].join(' ')}; known: ${KNOWN_TEMPLATES}`;
}

/** The text with its templates filled in, each value through `encode` first. Unknown names stay as they are. */
export function renderTemplate(
  text: string,
  values: TemplateValues,
  encode: (value: string) => string = asItIs,
): string {
  if (!hasTemplate(text)) return text;
  return replaceTemplates(text, (name, whole) => (isTemplateName(name) ? encode(templateValue(name, values)) : whole));
}

function replaceTemplates(text: string, replace: (name: string, whole: string) => string): string {
  const pieces = splitTemplate(text);
  return pieces.map((piece, index) => (index % 2 === 0 ? piece : replace(piece, `{{${piece}}}`))).join('');
}

/**
 * Text, the name in `{{…}}`, text, and so on: names are at the odd places. A loop rather than a regular expression: one
 * pass, also over thousands of braces that never close.
 */
export function splitTemplate(text: string): string[] {
  const pieces: string[] = [];
  let done = 0;
  for (;;) {
    const open = text.indexOf('{{', done);
    const close = open === -1 ? -1 : text.indexOf('}}', open + 2);
    if (close === -1) return [...pieces, text.slice(done)];
    pieces.push(text.slice(done, open), text.slice(open + 2, close));
    done = close + 2;
  }
}

/** A `{{` without its `}}` was meant to be a name: firelock would send it as text. */
export function isNeverClosed(text: string): boolean {
  return splitTemplate(text).at(-1)?.includes('{{') ?? false;
}

export const NEVER_CLOSED = 'has a {{ that is never closed by }}';

export function isTemplateName(name: string): name is TemplateName {
  return (TEMPLATE_NAMES as readonly string[]).includes(name);
}

export function templateValue(name: TemplateName, values: TemplateValues): string {
  switch (name) {
    case 'runId':
      return values.runId;
    case 'runName':
      return values.runName ?? values.runId;
    case 'scheduleId':
      return values.scheduleId ?? '';
    case 'scheduledFor':
      return isoInstant(values.scheduledFor);
    case 'attempt':
      return String(values.attempt);
  }
}

function asItIs(value: string): string {
  return value;
}
