import { type Scope, owns } from '../../core/access/scope.ts';
import { parseJsonBody } from '../../api/http/json/json-body.ts';
import { SET_LABEL } from '../../schedules-file/schedules-file.ts';
import { stringify } from '../../api/http/json/raw-json.ts';
import type { Cli } from '../cli.ts';
import type { CallerAnswer } from '../server/answers.ts';
import type { Query, Server } from '../server/server-calls.ts';
import { type Exported, createOrder, exported, withoutNothing } from './export-schedules.ts';
import { inComment, listItem } from './yaml-text.ts';

export interface ExportOptions {
  set?: string;
  format?: 'yaml' | 'json';
}

/** Writes everything that the caller may change, page by page; it only keeps schedules that follow others until the end. */
export async function exportAll(cli: Cli, { set, format = 'yaml' }: ExportOptions): Promise<void> {
  const server = cli.server();
  const scope = await scopeOf(server);
  const { out, now } = cli.surroundings;
  const write = (text: string) => out.write(text);
  const writer = format === 'json' ? jsonWriter(write) : yamlWriter(write);
  writer.begin(set ?? null, server.url);
  for (const kind of ['limits', 'calendars', 'connections', 'notifiers'] as const) {
    writer.list(kind);
    for await (const { fields } of pagesOf(server, kind, { scope }))
      writer.item({ fields: nonEmpty(kind, fields), isOver: null });
  }
  writer.list('schedules');
  const order = createOrder();
  const over = new Set<string>();
  let left = 0;
  const put = (one: Exported) => {
    if (one.isOver !== null) left += 1;
    writer.item(one);
  };
  const query = set === undefined ? {} : { label: `${SET_LABEL}:${set}` };
  for await (const answered of pagesOf(server, 'schedules', { query, scope })) {
    const one = exported(answered, now(), set ?? null);
    if (one.isOver !== null) over.add(String(one.fields['id']));
    if (!order.putOff(one)) put(one);
  }
  for (const one of order.rest((id) => over.has(id))) put(one);
  writer.end();
  if (left > 0) cli.output().note(`left out: ${left} schedules that are over, which a new installation would refuse`);
}

async function scopeOf(server: Server): Promise<Scope> {
  const answer = await server.call('GET', 'me');
  // An older server does not say it, and has none.
  return (answer.body() as Partial<CallerAnswer>).scope ?? null;
}

/** Items of this scope, with their payloads as the server wrote them, byte for byte. */
async function* pagesOf(server: Server, path: string, { query = {}, scope }: { query?: Query; scope: Scope }) {
  let cursor: string | null = null;
  do {
    const asked: Query = { ...query, limit: 500, cursor: cursor ?? undefined };
    const { text } = await server.call('GET', path, { query: asked });
    const { value, payloads } = await parseJsonBody(Buffer.from(text));
    const page = value as { items: Record<string, unknown>[]; nextCursor: string | null };
    for (const [index, fields] of page.items.entries())
      // What is shared is read by everybody, and belongs into the file of those who may change it.
      if (owns(scope, String(fields['id']))) yield { fields, payload: payloads.get(`/items/${index}/payload`) ?? null };
    cursor = page.nextCursor;
  } while (cursor !== null);
}

const NAMES = {
  limits: ['id', 'description', 'maxRunning'],
  calendars: ['id', 'description', 'dates'],
  connections: ['id', 'description', 'url', 'headers', 'auth', 'tls'],
  notifiers: 'id description enabled on filter channel remindSeconds afterFailures fallback'.split(' '),
};

/** The fields of a limit, a calendar, a connection or a notifier that a client may set. */
function nonEmpty(kind: keyof typeof NAMES, fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // Without reminders, a notifier says so.
  const said = NAMES[kind].flatMap((name) =>
    fields[name] === null && name !== 'remindSeconds' ? [] : [[name, fields[name]]],
  );
  const named = Object.fromEntries(said) as Record<string, unknown>;
  if (kind === 'connections') return withoutNothing(named) as Record<string, unknown>;
  return kind === 'notifiers' ? { ...named, channel: withoutNothing(named['channel']) } : named;
}

interface Writer {
  begin(set: string | null, url: string): void;
  list(kind: string): void;
  item(one: Exported): void;
  end(): void;
}

const SECRETS = `# Values of headers and secrets are "***": where the server has the schedule, connection or notifier already, it keeps them. For
# another server write them as \${NAME} and set the environment variable NAME.`;

function yamlWriter(write: (text: string) => void): Writer {
  let isEmpty = false;
  const close = () => {
    if (isEmpty) write('  []\n');
  };
  return {
    begin: (set, url) => {
      write(`# What firelock at ${url} has (docs/git.md): firelock export.\n${SECRETS}\n`);
      if (set !== null) write(`set: ${JSON.stringify(set)}\n`);
    },
    list: (kind) => {
      close();
      write(`${kind}:\n`);
      isEmpty = true;
    },
    item: ({ fields, isOver }) => {
      if (isOver !== null) {
        const text = `${isOver}: a new installation would refuse it\n${listItem(fields)}`;
        write(`${inComment(text).trimEnd()}\n`);
        return;
      }
      isEmpty = false;
      write(listItem(fields));
    },
    end: close,
  };
}

function jsonWriter(write: (text: string) => void): Writer {
  let separator = '';
  let isOpen = false;
  return {
    begin: (set) => write(`{${set === null ? '' : `"set":${JSON.stringify(set)},`}`),
    list: (kind) => {
      write(`${isOpen ? '\n],' : ''}\n"${kind}":[`);
      [separator, isOpen] = ['', true];
    },
    item: ({ fields, isOver }) => {
      if (isOver !== null) return;
      write(`${separator}\n${stringify(fields)}`);
      separator = ',';
    },
    end: () => write('\n]}\n'),
  };
}
