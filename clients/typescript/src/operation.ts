import type { Schedule, ScheduleInput } from './generated/types.gen.ts';

/** One call of the API, as the OpenAPI document has it. */
export interface Operation {
  method: string;
  path: string;
  bodyType?: string;
  /** Statuses that are an answer although they are not 2xx. */
  alsoGood?: readonly number[];
}

/** What an operation takes, as one object: the parameters of path and query by their names, headers, and `body`. */
export type Input<Data> = Shown<Of<Data, 'path'> & Of<Data, 'query'> & Named<Of<Data, 'headers'>> & BodyOf<Data>>;

export interface CallOptions {
  /** Ends the call early: its promise rejects. The daemon may have done it nevertheless. */
  signal?: AbortSignal;
  /** Instead of the client's own. */
  timeoutMs?: number;
  /** Is told the status and the headers of the answer, problems included. */
  onAnswer?: (answer: { status: number; headers: Headers }) => void;
}

/** A schedule as it was answered, edited: `putSchedule` takes it as well. Fields that are only read are ignored. */
export type EditedSchedule = Omit<Schedule, Looser> & { [Name in Looser]?: Fields[Name] | Schedule[Name] };

/** What may be written in more ways than it is answered. */
type Looser = 'target' | 'payload' | 'retry' | 'exclude' | 'after' | 'cron';
type Fields = Pick<ScheduleInput, Looser>;

type Of<Data, Part extends string> =
  Data extends Partial<Record<Part, infer Members>>
    ? [NonNullable<Members>] extends [never]
      ? unknown
      : NonNullable<Members>
    : unknown;

/** The version that a schedule was read at may be given as the number that it is. */
interface HeaderTypes {
  'If-Match': { name: 'ifMatch'; value: string | number };
  'If-None-Match': { name: 'ifNoneMatch'; value: string };
  'Idempotency-Key': { name: 'idempotencyKey'; value: string };
}

type Named<Members> = {
  [Header in keyof Members & keyof HeaderTypes as HeaderTypes[Header]['name']]?: HeaderTypes[Header]['value'];
};

type BodyOf<Data> = Data extends { body?: never }
  ? unknown
  : Data extends { body: infer Body }
    ? { body: Loosened<Body> }
    : Data extends { body?: infer Body }
      ? { body?: Loosened<NonNullable<Body>> }
      : unknown;

/** What GET answered can be edited and sent back. */
type Loosened<Body> = Body extends ScheduleInput
  ? Body | EditedSchedule
  : Body extends { items: (infer Item)[] }
    ? Item extends ScheduleInput & { id: string }
      ? Omit<Body, 'items'> & { items: (Item | EditedSchedule)[] }
      : Body
    : Body;

/** In editors: the members, and not how the type came about. */
type Shown<Members> = { [Name in keyof Members]: Members[Name] };
