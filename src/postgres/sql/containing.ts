import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';

/**
 * Whether a column has a text anywhere in it, in any letter case; nothing in the text stands for anything else. The locale of the database
 * may know the case of ASCII only, or another one (I and ı): letters beyond ASCII that the text has are made small here.
 */
export function containing(column: SQLWrapper, text: string): SQL {
  const { small, others } = withoutCase(text);
  const pattern = `%${small.replaceAll(/[\\%_]/g, '\\$&')}%`;
  const from = others.map(([letter]) => letter).join('');
  const to = others.map(([, smallLetter]) => smallLetter).join('');
  const searched = from === '' ? column : sql`translate(${column}, ${from}, ${to})`;
  return sql`(${searched}) COLLATE "C" ILIKE ${pattern}`;
}

/** The text in small letters, and the other forms of its letters beyond ASCII, each with the small one. */
function withoutCase(text: string): { small: string; others: [letter: string, small: string][] } {
  const others = new Map<string, string>();
  const letters = Array.from(text).map((letter) => {
    const [small, ...rest] = letter.toLowerCase();
    if (small === undefined || rest.length > 0 || small <= '\x7f') return letter;
    for (const form of formsOf(small)) if (form !== small) others.set(form, small);
    return small;
  });
  return { small: letters.join(''), others: [...others] };
}

/** Single characters only: ß has no other form. The last σ of a word is another letter than those before. */
function formsOf(small: string): string[] {
  const forms = ['σ', 'ς'].includes(small) ? ['σ', 'ς'] : [small];
  return [...forms, ...forms.map((form) => form.toUpperCase())].filter(
    (form) => Array.from(form).length === 1,
  );
}
