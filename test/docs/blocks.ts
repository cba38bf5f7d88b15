import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

/** A fenced block of a page. */
export interface Block {
  page: string;
  line: number;
  language: string;
  /** Without the indentation of its fence. */
  text: string;
}

/** What a block is: a file is what its first line names, an answer is of the commands before it. */
type Kind = 'drawing' | 'run' | 'statement' | 'file' | 'answer' | 'unknown';

const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.firelock']);

/** All Markdown files of the repository, by their paths from its root. */
export function pages(folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : pages(path);
      return entry.name.endsWith('.md') ? [path] : [];
    });
}

export function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

export function blocksOf(page: string): Block[] {
  const text = textOf(page);
  return [...text.matchAll(/^( *)```(\S*).*\n([^]*?)^\1```$/gm)].map((found) => {
    const [, indentation = '', language = '', body = ''] = found;
    return {
      page,
      line: text.slice(0, found.index).split('\n').length,
      language,
      text: body.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
    };
  });
}

/** The shell blocks of a page. */
export function shellBlocksOf(page: string): Block[] {
  return blocksOf(page).filter((block) => kindOf(block) === 'run');
}

export function kindOf(block: Block): Kind {
  const { language } = block;
  if (['', 'text', 'mermaid'].includes(language)) return 'drawing';
  if (['sh', 'bash', 'console'].includes(language)) return 'run';
  if (language === 'sql') return 'statement';
  if (fileNameOf(block) !== null) return 'file';
  if (language === 'json') return 'answer';
  return 'unknown';
}

/** `# schedules.yaml` as its first line makes a block that file. */
export function fileNameOf({ text }: Block): string | null {
  return /^(?:#|\/\/) ([\w-]+\.\w+)$/m.exec(text.split('\n', 1)[0] ?? '')?.[1] ?? null;
}

/** The shell block that a block with an answer belongs to: the last one before it. */
export function askedBy(answer: Block): Block | undefined {
  return shellBlocksOf(answer.page).findLast(({ line }) => line < answer.line);
}

export function placeOf({ page, line }: Block): string {
  return `${page}:${line}`;
}
