import ts from 'typescript';
import { LOG_ADVICE } from './log-advice.ts';
import { type Recognise, type SaidText, SourceTexts } from './source-texts.ts';

const HEAD = `# Messages

For operators and callers: every text that firelock says in its log, as a warning of \`/readyz\`, in the problems of its API and in errors of its commands, and
what to do about it. \`…\` stands for a value. A text that is only a value, such as the reason that a database or a
target gives, is not listed. \`npm run reference\` writes this page from the source.
`;

/** The page of all messages. `paths`: the TypeScript files of `src/`. */
export function messagesReference(root: string, paths: readonly string[]): string {
  const texts = new SourceTexts(root, paths);
  const isCommand = (path: string) => path.startsWith('src/cli/');
  const isDaemon = (path: string) => !isCommand(path);
  return [
    HEAD,
    logSection(texts.said(logLine, isDaemon)),
    warningSection(texts.said(warning, (path) => path.startsWith('src/runtime/readiness'))),
    apiSection(texts.said(problem, isDaemon)),
    commandSection(texts.said(commandError, isCommand)),
  ].join('\n');
}

/** Calls of a logger, and what is handed to it as it is: events of the embedded server, and a loop that is stuck. */
const logLine: Recognise = (name, args, call) => {
  if (/(?:^|\.)onEvent$/.test(name)) return { text: args[0] ?? null, of: 'info' };
  if (name === 'onStuck') return { text: args[0] ?? null, of: 'fatal' };
  const [isLogged, level] = /(?:^|\.)(?:logger|log|line)(?:\.(debug|info|warn|error|fatal)|\[.*\])$/s.exec(name) ?? [];
  if (isLogged === undefined) return null;
  const chosen = ts.isCallExpression(call) && ts.isElementAccessExpression(call.expression);
  return { text: args.at(-1) ?? null, of: level ?? (chosen ? call.expression.argumentExpression : 'debug') };
};

/** What `readinessOf` puts into `warnings`: texts, what a function returns, and a text for each of several things. */
const warning: Recognise = (name, args, call) => {
  const [first] = args;
  if (name === 'warnings.push') return { text: first ?? null, of: '' };
  if (name === 'installationWarning') return { text: call as ts.CallExpression, of: '' };
  const isOfEach = name.endsWith('.map') && first && ts.isArrowFunction(first) && !ts.isBlock(first.body);
  return isOfEach ? { text: first.body, of: '' } : null;
};

const problem: Recognise = (name, args) => {
  if (name === 'Problem') return { text: args[1] ?? null, of: args[0] ?? '' };
  return name === 'NotNow' ? { text: args[0] ?? null, of: '503' } : null;
};

const commandError: Recognise = (name, args) =>
  name === 'CliError' ? { text: args[1] ?? null, of: args[0]?.getText() ?? '' } : null;

function logSection(texts: readonly SaidText[]): string {
  const levels = ['fatal', 'error', 'warn', 'info', 'debug'];
  const worst = ({ of }: SaidText) => levels.find((level) => of.split(' or ').includes(level)) ?? '';
  const byLevel = Map.groupBy(texts, worst);
  const parts = levels.map((level) => {
    const lines = (byLevel.get(level) ?? []).map(({ text }) => item(text, adviceOf(level, text)));
    return `### ${level}\n\n${LEVELS[level] ?? ''}\n\n${lines.join('\n')}\n`;
  });
  const unknown = Object.keys(LOG_ADVICE).filter((text) => !texts.some((one) => one.text === text));
  if (unknown.length > 0) throw new Error(`log-advice.ts has texts that the log does not say: ${unknown.join('; ')}`);
  return `## The log\n\nA line is JSON; \`level\` is 60 for fatal, 50, 40, 30, and 20 for debug. \`LOG_LEVEL\` sets the lowest.\n\n${parts.join('\n')}`;
}

const LEVELS: Readonly<Record<string, string>> = {
  fatal: 'The process ends.',
  error: 'An operator should find the cause and remove it.',
  warn: 'Something went wrong, and firelock handles it itself; or an operator should know of it.',
  info: 'Nothing to do.',
  debug: 'Nothing to do. Lines of single fires and calls.',
};

function adviceOf(level: string, text: string): string {
  const advice = LOG_ADVICE[text];
  if (advice !== undefined) return advice;
  if (level === 'info' || level === 'debug') return '';
  throw new Error(`log-advice.ts does not say what to do about "${text}"`);
}

function warningSection(texts: readonly SaidText[]): string {
  const lines = texts.map(({ text }) => item(text, ''));
  return `## Warnings of /readyz\n\nThey leave the instance ready; the text says where to look.\n\n${lines.join('\n')}\n`;
}

/** By status; what to do is the same for all of one status. */
const STATUSES: Readonly<Record<string, string>> = {
  400: 'Correct the request; `errors` names every fault.',
  401: 'Send a valid token.',
  403: 'Use a token of the role that the call needs, or ask an administrator.',
  404: 'Check the id and the path.',
  405: 'Use one of the methods that `Allow` names.',
  409: 'Change what stands in the way first; the text names it.',
  412: 'Read it again, and decide again with its new `ETag`.',
  415: 'Send the body as the text says.',
  417: 'Leave out the header `Expect`.',
  422: 'Use another key for another body.',
  429: 'Wait for as long as `Retry-After` says.',
  431: 'Send fewer headers.',
  500: 'Tell the operator; the log has the error.',
  503: 'Try again after `Retry-After`. If it lasts, see [the runbook](runbook.md#firelocknolease).',
};

function apiSection(texts: readonly SaidText[]): string {
  const byStatus = Map.groupBy(texts, ({ of }) => (of in STATUSES ? of : ''));
  const unknown = texts.filter(({ of }) => /^\d+$/.test(of) && !(of in STATUSES));
  if (unknown.length > 0) throw new Error(`no advice for status ${unknown.map(({ of }) => of).join()}`);
  const parts = [...Object.keys(STATUSES), ''].map((status) => {
    const heading = status === '' ? 'Several statuses' : status;
    const advice = STATUSES[status] ?? 'The status is that of the fault.';
    return part(heading, advice, byStatus.get(status) ?? []);
  });
  return `## Problems of the API\n\nThe \`detail\` of an \`application/problem+json\`.\n\n${parts.join('\n')}`;
}

const EXIT_CODES: Readonly<Record<string, string>> = {
  'EXIT.usage': 'Exit code 64. Correct the command; nothing was sent.',
  'EXIT.failed': 'Exit code 1. The text says what is to be done.',
  'EXIT.notFound': 'Exit code 3. Check the id.',
  'EXIT.unreachable': 'Exit code 4. Check FIRELOCK_URL; the same command may work later.',
  'EXIT.notAllowed': 'Exit code 5. Check FIRELOCK_TOKEN.',
  'EXIT.interrupted': 'Exit code 130. You have interrupted it.',
};

function commandSection(texts: readonly SaidText[]): string {
  const byCode = Map.groupBy(texts, ({ of }) => of);
  const parts = Object.entries(EXIT_CODES).map(([code, advice]) => {
    const found = byCode.get(code) ?? [];
    return found.length === 0 ? '' : part(code.replace('EXIT.', ''), advice, found);
  });
  return `## Errors of commands\n\nOn standard error, after \`firelock: \`. What a server answers is shown as it is.\n\n${parts.join('\n')}`;
}

function part(heading: string, advice: string, texts: readonly SaidText[]): string {
  return `### ${heading}\n\n${advice}\n\n${texts.map(({ text }) => item(text, '')).join('\n')}\n`;
}

function item(text: string, advice: string): string {
  const quote = text.includes('`') ? '``' : '`';
  return `- ${quote}${text}${quote}${advice === '' ? '' : ` → ${advice}`}`;
}
