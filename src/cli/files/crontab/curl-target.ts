import { targetInput } from '../../../api/targets/schemas.ts';
import { constantWords, curlLine, wgetLine } from './curl-options.ts';
import { type CurlRequest, curlRequest } from './curl-request.ts';
import { StaysCommand } from './imported.ts';

interface CurlCommand {
  /** As the crontab has it, before its percent signs are read. */
  source: string;
  command: string;
  stdin?: string;
  env: Readonly<Record<string, string>>;
}

interface CurlCall extends CurlRequest {
  /** The command without the values that stay out of the file; null: there are none. */
  redacted: string | null;
  isWget: boolean;
}

/** What a command seems to call, with whatever around it; null: neither curl nor wget. */
export function calledIn(command: string): 'curl' | 'wget' | null {
  return (/(?:^|[\s;&|(`/])(curl|wget)\s/.exec(command)?.[1] as 'curl' | 'wget' | undefined) ?? null;
}

/** What a command sends that calls curl or wget once, and does nothing else. @throws StaysCommand */
export function readCurl({ source, command, stdin, env }: CurlCommand): CurlCall {
  // Some versions of cron make one backslash of two.
  if (source.includes('\\\\')) throw new StaysCommand('versions of cron differ about “\\\\”');
  if (/[^\P{Cc}\t]|\ufffd/u.test(source))
    throw new StaysCommand('it has a control character, or one that is not UTF-8');
  const shell = env['SHELL'] ?? '/bin/sh';
  if (!SHELLS.test(shell)) throw new StaysCommand(`its shell is ${shell}`);
  const variable = Object.keys(env).find((name) => OF_CURL.test(name));
  const program = calledIn(command) ?? 'curl';
  if (variable !== undefined) throw new StaysCommand(`${program} obeys the variable ${variable}`);
  const words = constantWords(command);
  if (!PROGRAMS[program].test(words[0]?.text ?? '')) throw new StaysCommand(`it does not begin with ${program}`);
  const request = curlRequest(program === 'wget' ? wgetLine(words) : curlLine(words), stdin);
  checkTarget(request);
  const hidden = new Map(
    request.headers.flatMap(({ name, word }): [number, string][] =>
      word === null || isOpenHeader(name) ? [] : [[word, `"${name}: …"`]],
    ),
  );
  if (request.user !== null) hidden.set(request.user.word, '…');
  const isWget = program === 'wget';
  if (hidden.size === 0) return { ...request, redacted: null, isWget };
  const shown = words.map((word, index) => hidden.get(index) ?? word.source).join(' ');
  const input = stdin === undefined ? '' : `%${stdin.trimEnd().replaceAll('\n', '%')}`;
  return { ...request, redacted: shown + input, isWget };
}

const PROGRAMS = {
  curl: /^(?:(?:\/usr(?:\/local)?)?\/bin\/)?curl$/,
  wget: /^(?:(?:\/usr(?:\/local)?)?\/bin\/)?wget$/,
};
const SHELLS = /^(?:\/usr(?:\/local)?)?\/bin\/(?:sh|bash|dash|ash|ksh)$/;
const OF_CURL =
  /^(?:https?_proxy|all_proxy|no_proxy|curl_home|curl_ca_bundle|ssl_cert_(?:file|dir)|xdg_config_home|bash_env|(?:system_)?wgetrc)$/i;

/** Headers whose values are no secrets. */
export function isOpenHeader(name: string): boolean {
  return /^(?:accept(?:-\w+)?|cache-control|content-type|origin|pragma|prefer|referer|x-requested-with)$/i.test(name);
}

/** The target in a file of schedules, and what its owner has to know. */
export function curlTarget(call: CurlCall, id: string) {
  const notes = call.isWget ? ['wget follows redirects, and tries 20 times to connect: firelock does neither'] : [];
  const leftOut = (name: string, what: string) => {
    const variable = `${id}_${name}`.replace(/\W/g, '_').toUpperCase();
    notes.push(`the value of ${name} is not in this file: put ${what} into ${variable} (--variable)`);
    return [name, `\${${variable}}`];
  };
  const values = call.headers.map(({ name, value }) =>
    isOpenHeader(name) ? [name, unsubstituted(value)] : leftOut(name, 'what the crontab has'),
  );
  if (call.user !== null)
    values.push(leftOut('Authorization', '“Basic ” and the base64 of the user:password after -u'));
  return { target: targetWith(call, values), notes };
}

function targetWith({ url, method, body }: CurlRequest, headers: readonly (readonly string[])[]) {
  return {
    type: 'http',
    url,
    method,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) as Record<string, string> }),
    ...(body === null ? {} : { body }),
  };
}

function checkTarget(request: CurlRequest): void {
  const headers = request.headers.map(({ name, value }) => [name, value]);
  const checked = targetInput.safeParse(targetWith(request, headers));
  if (checked.success) return;
  const [{ path, message } = { path: [], message: '' }] = checked.error.issues;
  throw new StaysCommand(`firelock refuses ${path.join('/')}: ${message}`);
}

/** A file's `${NAME}` would be a variable. */
function unsubstituted(value: string): string {
  return value.replace(/\$\{(?=[A-Za-z_]\w*\})/g, () => '$${');
}
