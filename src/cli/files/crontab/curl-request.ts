import { compileBody, readContentType } from '../../../core/http/body-template.ts';
import { isReservedHeader } from '../../../core/http/header-rules.ts';
import { hasTemplate } from '../../../core/http/template.ts';
import { type BodyTemplate, type HttpMethod, HTTP_METHODS } from '../../../core/schedules/schedule.ts';
import type { CurlLine, CurlOption } from './curl-options.ts';
import { StaysCommand } from './imported.ts';

interface CurlHeader {
  name: string;
  value: string;
  /** The word of the command that has it; null: curl adds it by itself. */
  word: number | null;
}

export interface CurlRequest {
  url: string;
  method: HttpMethod;
  headers: CurlHeader[];
  /** Of -u. */
  user: CurlOption | null;
  /** null: there is none, as with every GET. "payload": an empty one, for the payload is absent. */
  body: 'payload' | BodyTemplate | null;
  timeoutSeconds: number;
  /** Null: one attempt. */
  retry: CurlRetry | null;
}

interface CurlRetry {
  maxAttempts: number;
  minBackoffSeconds?: number;
  maxBackoffSeconds?: number;
}

/** What curl sends, if firelock can send the same. @throws StaysCommand */
export function curlRequest({ options, urls }: CurlLine, stdin: string | undefined): CurlRequest {
  const last = (name: string) => options.findLast((option) => option.name === name) ?? null;
  const has = (name: string) => last(name) !== null;
  if (has('location')) throw new StaysCommand('-L: firelock follows no redirect');
  if (options.some(({ name, value }) => name === 'output' && value !== '/dev/null'))
    throw new StaysCommand('-o writes a file');
  const data = curlData(options, stdin);
  if (has('get') && has('json')) throw new StaysCommand('-G with --json');
  const sent = has('get') ? null : data;
  const method = methodOf(last('request')?.value, { isHead: has('head'), hasBody: sent !== null });
  const { headers, contentType } = headersOf(options, sent);
  const user = last('user');
  if (options.filter(({ name }) => name === 'user').length > 1) throw new StaysCommand('two -u');
  if (user !== null && !user.value.includes(':')) throw new StaysCommand('-u asks for a password');
  if (user !== null && headers.some(({ name }) => name.toLowerCase() === 'authorization'))
    throw new StaysCommand('-u beside a header Authorization');
  return {
    url: curlUrl(urls, has('get') ? data : null),
    method,
    headers,
    user,
    body: bodyOf(sent, contentType, method),
    timeoutSeconds: timeoutOf(last('max-time')?.value, last('connect-timeout')?.value),
    retry: retryOf(last('retry')?.value ?? '0', last('retry-delay')?.value ?? '0'),
  };
}

/** curl waits a second, twice as long each time, and ten minutes at most. */
function retryOf(times: string, delay: string): CurlRetry | null {
  const maxAttempts = attemptsOf('--retry', times) + 1;
  const seconds = optionSeconds('--retry-delay', delay);
  if (maxAttempts === 1) return null;
  if (seconds === 0) return { maxAttempts, minBackoffSeconds: 1, maxBackoffSeconds: 600 };
  if (!Number.isInteger(seconds) || seconds > 600) throw new StaysCommand(`--retry-delay ${delay}`);
  return { maxAttempts, minBackoffSeconds: seconds, maxBackoffSeconds: seconds };
}

function attemptsOf(option: string, text: string): number {
  if (!/^\d{1,2}$/.test(text)) throw new StaysCommand(`${option} ${text}: firelock makes at most 100 attempts`);
  return Number(text);
}

function methodOf(request: string | undefined, { isHead, hasBody }: { isHead: boolean; hasBody: boolean }): HttpMethod {
  const named = request ?? (isHead ? 'HEAD' : hasBody ? 'POST' : 'GET');
  const method = HTTP_METHODS.find((one) => one === named);
  if (method === undefined) throw new StaysCommand(`firelock has no method ${named}`);
  if (isHead !== (method === 'HEAD')) throw new StaysCommand('-I and HEAD are not the same to curl');
  if (hasBody && (method === 'GET' || isHead)) throw new StaysCommand(`a ${method} with a body`);
  return method;
}

const FORM = 'application/x-www-form-urlencoded';

/** The headers that curl sends because of its options; the type of a body that is not empty stands apart. */
function headersOf(options: readonly CurlOption[], sent: string | null) {
  const headers: CurlHeader[] = [];
  const removed = new Set<string>();
  const has = (name: string) => removed.has(name) || headers.some((header) => header.name.toLowerCase() === name);
  for (const { name, value, word } of options) {
    if (name !== 'header') continue;
    const header = headerOf(value, word);
    const lower = header.name.toLowerCase();
    if (has(lower)) throw new StaysCommand(`two headers ${header.name}`);
    if (header.value !== '') headers.push(header);
    else if (UNSENT.has(lower)) removed.add(lower);
    else throw new StaysCommand(`it removes the header ${header.name}`);
  }
  const isJson = options.some(({ name }) => name === 'json');
  const add = (name: string, value: string) => {
    if (!has(name.toLowerCase())) headers.push({ name, value, word: null });
  };
  if (sent !== null) add('Content-Type', isJson ? 'application/json' : FORM);
  if (isJson) add('Accept', 'application/json');
  if (sent === null || sent === '') return { headers, contentType: '' };
  const isType = ({ name }: CurlHeader) => name.toLowerCase() === 'content-type';
  return {
    headers: headers.filter((header) => !isType(header)),
    contentType: headers.find(isType)?.value ?? '',
  };
}

/** Headers that curl sends by itself and firelock does not. */
const UNSENT = new Set(['accept', 'expect']);

function headerOf(line: string, word: number): CurlHeader {
  const [, name, text = ''] = /^([^:@;\s][^:;\s]*):(.*)$/s.exec(line) ?? [];
  if (name === undefined) throw new StaysCommand('a header that is not of the form “name: value”');
  const value = text.trim();
  if (isReservedHeader(name) && !(value === '' && UNSENT.has(name.toLowerCase())))
    throw new StaysCommand(`firelock sets the header ${name} itself`);
  if (!/^[\t\x20-\x7e]*$/.test(value)) throw new StaysCommand(`the header ${name} has characters that are not ASCII`);
  if (hasTemplate(value)) throw new StaysCommand(`${BRACES} (header ${name})`);
  return { name, value, word };
}

const BRACES = '“{{” begins a placeholder in firelock';

function bodyOf(sent: string | null, contentType: string, method: HttpMethod): CurlRequest['body'] {
  if (method === 'GET' || method === 'HEAD') return null;
  if (sent === null || sent === '') return 'payload';
  if (hasTemplate(sent)) throw new StaysCommand(`${BRACES} (body)`);
  const type = readContentType(contentType);
  if ('fault' in type) throw new StaysCommand(`its content type ${type.fault}`);
  const body = { template: sent, contentType };
  if ('fault' in compileBody(body)) throw new StaysCommand('its body is not JSON, although its content type says so');
  return body;
}

/** curl waits without end; firelock for an hour at most. */
const LONGEST = 3600;

function timeoutOf(maxTime = '0', connectTimeout: string | undefined): number {
  const limit = optionSeconds('-m', maxTime) || LONGEST;
  if (limit < 1 || limit > LONGEST) throw new StaysCommand(`-m ${maxTime}: firelock takes 1 to ${LONGEST} s`);
  if (connectTimeout !== undefined && optionSeconds('--connect-timeout', connectTimeout) < limit)
    throw new StaysCommand('--connect-timeout: firelock has one limit for the whole call');
  return limit;
}

function optionSeconds(option: string, text: string): number {
  if (!/^\d{1,9}(?:\.\d{1,3})?$/.test(text)) throw new StaysCommand(`${option} ${text} is not a number of seconds`);
  return Number(text);
}

/** What -d and the like give, joined as curl joins them; null: there are none. @throws StaysCommand */
function curlData(options: readonly CurlOption[], stdin: string | undefined): string | null {
  const given = options.filter(({ name }) => name.startsWith('data') || name === 'json');
  const isRead = given.filter(({ name, value }) => name !== 'data-raw' && value === '@-').length;
  if (isRead > 1) throw new StaysCommand('two options read its input');
  if (isRead === 0 && stdin !== undefined) throw new StaysCommand('curl does not read its input (“%”)');
  const pieces = given.map((option) => ({ ...option, text: textOf(option, stdin) }));
  if (pieces.length > 1 && pieces.some(({ text }) => text === ''))
    throw new StaysCommand('versions of curl differ about an empty -d beside others');
  return pieces.reduce<string | null>((before, { name, text }) => {
    if (before === null) return text;
    return name === 'json' ? before + text : `${before}&${text}`;
  }, null);
}

function textOf({ name, value }: CurlOption, stdin: string | undefined): string {
  if (name === 'data-raw' || !value.startsWith('@')) return value;
  if (value !== '@-') throw new StaysCommand(`--${name} reads the file ${value.slice(1)}`);
  if (stdin === undefined) throw new StaysCommand(`--${name} @- without an input (“%”)`);
  return name === 'data' || name === 'data-ascii' ? stdin.replace(/[\r\n\0]/g, '') : stdin;
}

/**
 * The URL of a call; `query` is what -G adds to it. @throws StaysCommand unless curl and firelock send the same bytes for
 * it to the same place
 */
function curlUrl(urls: readonly string[], query: string | null): string {
  const [given = ''] = urls;
  if (urls.length !== 1) throw new StaysCommand(`${urls.length} URLs`);
  if (!/^https?:\/\//i.test(given)) throw new StaysCommand('its URL does not begin with http:// or https://');
  if (/^[^/]+\/\/[^/?#]*@/.test(given)) throw new StaysCommand('its URL has credentials');
  const [expanded] = /[[\]{}]/.exec(given) ?? [];
  if (expanded !== undefined) throw new StaysCommand(`curl expands “${expanded}” in its URL`);
  const url = query === null ? given : withQuery(given, query);
  const [, host = '', rest = ''] = SAME.exec(url) ?? [];
  const parsed = URL.parse(url);
  if (parsed?.hostname !== host.toLowerCase() || !isSent(rest, parsed))
    throw new StaysCommand('firelock would write its URL in another way');
  if (LOCAL.test(parsed.hostname)) throw new StaysCommand(`${parsed.hostname} is the machine on which a command runs`);
  return url;
}

/** What both leave as it is: other characters are encoded, by curl in a way that depends on its version. */
const SAME = /^https?:\/\/([\w-]+(?:\.[\w-]+)*)(?::\d{1,5})?([/?][\w.~!$&'()*+,;=:@/?%-]*)?$/i;
const LOCAL = /^(?:localhost|.*\.localhost|localhost\.localdomain|127\..*|169\.254\..*|0\.0\.0\.0)$/;

function isSent(rest: string, { pathname, search }: URL): boolean {
  return (rest.startsWith('/') ? rest : `/${rest}`) === pathname + search;
}

/** Versions of curl differ about percent signs here, and about a query that is empty or ends with &. */
function withQuery(url: string, query: string): string {
  if (query === '' || /%|[?&]$/.test(url) || query.includes('%'))
    throw new StaysCommand('versions of curl differ about what -G makes of its URL');
  return `${url}${url.includes('?') ? '&' : '?'}${query}`;
}
