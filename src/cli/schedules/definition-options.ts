import type { Command } from 'commander';
import { type RawJson, isTree } from '../../api/http/json/raw-json.ts';
import { type PayloadOptions, collect, fileText, givenPayload, jsonValue, numberOrText } from '../common/arguments.ts';
import { usageError } from '../exit-codes.ts';
import type { Surroundings } from '../surroundings.ts';

export type Tree = Readonly<Record<string, unknown>>;

type Texts<Name extends string> = Partial<Record<Name, string>>;
type Lists<Name extends string> = Partial<Record<Name, string[]>>;

export type DefinitionOptions = PayloadOptions &
  Texts<'every' | 'at' | 'after' | 'on' | 'timezone' | 'description' | 'queue'> &
  Texts<Exclude<(typeof OF_CALLS)[number], 'header'>> &
  Lists<'cron' | 'label' | 'header' | 'set' | 'unset'>;

export function definitionOptions(command: Command): Command {
  return command
    .option('--cron <expression>', 'when it fires; several: when any of them does', collect)
    .option('--every <seconds>', 'fire at this interval')
    .option('--at <instant>', 'fire once')
    .option('--after <id>', 'fire after the runs of this schedule; billing.*: of each whose id begins so')
    .option('--on <status,…>', 'with --after: only after runs that end so')
    .option('--timezone <zone>', 'the IANA zone of --cron')
    .option('--description <text>', 'what it is for')
    .option('--label <key:value>', 'add this label, or change it; several', collect)
    .option('--url <url>', 'call this target by HTTP')
    .option('--connection <id>', 'by this connection: --url is a path below its own')
    .option('--method <method>', 'of the call')
    .option('--header <name: value>', 'of the call; several', collect)
    .option('--body <body>', 'what it carries: envelope, payload, or JSON as {"template": "…"}')
    .option('--body-file <file>', 'it carries the text of this file, with placeholders (-: standard input)')
    .option('--content-type <type>', 'of that text; a new body has application/json')
    .option('--succeed <status,…>', 'answers that count as handed off, as 409 or 3xx')
    .option('--retry-on <status,…>', 'answers that lead to another attempt')
    .option('--fail-on <status,…>', 'answers that end the run as failed')
    .option('--queue <queue>', 'put runs into this queue, for workers')
    .option('--payload <json>', 'what the target gets, byte for byte; it replaces the payload')
    .option('--payload-file <file>', 'the same, from a file (-: standard input)')
    .option('--set <path=json>', 'any other field, as retry.maxAttempts=3 or /labels/a.b=\'"x"\'; several', collect)
    .option('--unset <path>', 'back to its default; several', collect);
}

/** A merge patch with only what the options name. The payload is apart, since it is not merged. */
export async function definitionOf(
  options: DefinitionOptions,
  around: Pick<Surroundings, 'input'>,
): Promise<{ patch: Tree; payload: RawJson | undefined }> {
  const { bodyFile, payloadFile } = options;
  if (bodyFile === '-' && payloadFile === '-')
    throw usageError('only one of --body-file and --payload-file can be standard input');
  const parts: Tree[] = [timingOf(options), targetOf(options), await bodyOf(options, around)];
  if (options.description !== undefined) parts.push({ description: options.description });
  for (const label of options.label ?? []) {
    const [key, value] = pairIn(label, ':', '--label key:value');
    parts.push({ labels: treeAt([key], value) });
  }
  for (const path of options.unset ?? []) parts.push(treeAt(segmentsOf(path), null));
  parts.push(...fieldsSet(options.set));
  return { patch: parts.reduce(over), payload: await givenPayload(options, around) };
}

/** What `--set` names, each as a tree. */
export function fieldsSet(set: readonly string[] = []): Tree[] {
  return set.map((text) => {
    const [path, json] = pairIn(text, '=', '--set path=json');
    return treeAt(segmentsOf(path), jsonValue(json, `--set ${path}`));
  });
}

function timingOf({ cron, every, at, after, on, timezone }: DefinitionOptions): Tree {
  if (on !== undefined && after === undefined) throw usageError('--on needs --after');
  return {
    ...(cron && { cron: cron.length === 1 ? cron[0] : cron }),
    ...(every !== undefined && { everySeconds: numberOrText(every) }),
    ...(at !== undefined && { at }),
    ...(after !== undefined && {
      after: { scheduleId: after, ...(on !== undefined && { on: on.split(',') }) },
    }),
    ...(timezone !== undefined && { timezone }),
  };
}

const OF_CALLS = [
  'url',
  'connection',
  'method',
  'header',
  'body',
  'bodyFile',
  'contentType',
  'succeed',
  'retryOn',
  'failOn',
] as const;

/** Also sets the kind, so that a target of another kind is replaced. */
function targetOf(options: DefinitionOptions): Tree {
  const { url, connection, method, header = [], queue } = options;
  if (queue !== undefined && OF_CALLS.some((name) => options[name] !== undefined))
    throw usageError('give either --queue, or --url and other options of a call');
  if (queue !== undefined) return { target: { type: 'pull', queue } };
  const headers = header.map((text) => pairIn(text, ':', '--header "name: value"'));
  const outcome = outcomeListsOf(options);
  const http = {
    ...(url !== undefined && { type: 'http', url }),
    ...(connection !== undefined && { connection }),
    ...(method !== undefined && { method }),
    ...(headers.length > 0 && {
      headers: Object.fromEntries(headers.map(([name, value]) => [name, value.trim()])),
    }),
    ...(Object.keys(outcome).length > 0 && { outcome }),
  };
  return Object.keys(http).length === 0 ? {} : { target: http };
}

function outcomeListsOf({ succeed, retryOn, failOn }: DefinitionOptions): Tree {
  const lists = Object.entries({ succeed, retry: retryOn, fail: failOn });
  return Object.fromEntries(
    lists.flatMap(([name, text]) => (text === undefined ? [] : [[name, text.split(',').map(numberOrText)]])),
  );
}

/** The text of a file keeps the type that the body had, if none is given. */
async function bodyOf(
  { body, bodyFile, contentType }: DefinitionOptions,
  around: Pick<Surroundings, 'input'>,
): Promise<Tree> {
  if (body !== undefined && (bodyFile !== undefined || contentType !== undefined))
    throw usageError('give either --body, or --body-file and --content-type');
  if (body !== undefined) {
    const isWord = body === 'envelope' || body === 'payload';
    return treeAt(['target', 'body'], isWord ? body : jsonValue(body, '--body'));
  }
  const text = {
    ...(bodyFile !== undefined && { template: await fileText(bodyFile, around) }),
    ...(contentType !== undefined && { contentType }),
  };
  return Object.keys(text).length === 0 ? {} : treeAt(['target', 'body'], text);
}

/** `retry.maxAttempts`, or a JSON pointer where a name has a dot: `/labels/a.b`. */
function segmentsOf(path: string): string[] {
  if (!path.startsWith('/')) return path.split('.');
  return path
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function pairIn(text: string, separator: string, form: string): [name: string, value: string] {
  const at = text.indexOf(separator);
  if (at <= 0) throw usageError(`"${text}" is not of the form ${form}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** The value at a path, in objects that are otherwise empty. */
export function treeAt([first = '', ...rest]: readonly string[], value: unknown): Tree {
  return Object.fromEntries([[first, rest.length === 0 ? value : treeAt(rest, value)]]);
}

/** `patch` over `base`, object by object; `null` is an ordinary value here, which the server interprets. */
export function over(base: Tree, patch: Tree): Tree {
  const merged = new Map(Object.entries(base));
  for (const [name, value] of Object.entries(patch)) {
    const before = merged.get(name);
    merged.set(name, isTree(before) && isTree(value) ? over(before, value) : value);
  }
  return Object.fromEntries(merged);
}
