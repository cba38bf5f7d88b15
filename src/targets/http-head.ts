import type { Socket } from 'node:net';
import { type buildConnector, errors } from 'undici';
import { HEAD_LIMIT_BYTES, headLength, isPlainHead, readHead, statusOf } from '../core/http/answer-head.ts';

const NO_BYTES = Buffer.alloc(0);
/** What every parser refuses. */
const NOT_HTTP = Buffer.from('not HTTP\r\n');
/** How much of what is no answer an error quotes. */
const QUOTED_CHARACTERS = 60;

/**
 * Stands between the socket and undici's parser, which refuses heads that curl and browsers read. It hands on what is
 * plain as it is, a head that is not so as a plain one of the same meaning, and drops interim heads (1xx), of which undici
 * knows all but 100. It remembers what the attempt needs where even that cannot be parsed.
 */
export class AnswerHeads {
  /** The status of the answer that is being read; null: no status line was read so far. */
  statusCode: number | null = null;
  /** True once a byte has come since the request began. */
  began = false;
  /** What stood in place of a status line; null: nothing. */
  garbage: string | null = null;
  /** Bytes of a head that has not ended; null: none is expected. */
  #held: Buffer | null = null;

  /** A request is about to be written: the next bytes are the head of its answer. */
  requestBegins(): void {
    this.statusCode = null;
    this.began = false;
    this.#held = NO_BYTES;
    this.garbage = null;
  }

  /** Opens a connection whose answers are read through it. */
  reading(callback: buildConnector.Callback): buildConnector.Callback {
    return (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      this.#readFrom(socket);
      callback(null, socket);
    };
  }

  #readFrom(socket: Socket): void {
    const push = socket.push.bind(socket);
    socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
      if (this.#held === null) return push(chunk, encoding);
      // At the end the parser is to see that the head was cut.
      const out = chunk === null ? this.#giveUp() : this.#take(chunk);
      if (chunk === null) {
        if (out.length > 0) push(out);
        return push(null);
      }
      return out.length === 0 || push(out);
    };
  }

  #take(chunk: Buffer): Buffer {
    this.began ||= chunk.length > 0;
    if (this.#held?.length === 0 && isPlainHead(chunk)) {
      this.#held = null;
      this.statusCode = Number(chunk.toString('latin1', 9, 12));
      return chunk;
    }
    return this.#takeSlowly(Buffer.concat([this.#held ?? NO_BYTES, chunk]));
  }

  #takeSlowly(bytes: Buffer): Buffer {
    for (let rest = bytes; ;) {
      // Blank lines before a status line are skipped (RFC 9112, 2.2).
      while (rest[0] === CR || rest[0] === LF) rest = rest.subarray(1);
      const length = headLength(rest);
      if (length === -1) return this.#wait(rest);
      const head = readHead(rest.toString('latin1', 0, length));
      if (head === null) return this.#wait(rest);
      rest = rest.subarray(length);
      if (head.statusCode < 200) continue;
      this.#held = null;
      this.statusCode = head.statusCode;
      return head.text === null ? NOT_HTTP : Buffer.concat([Buffer.from(head.text, 'latin1'), rest]);
    }
  }

  /** For the rest of the head, unless none can come: then the parser is to refuse it at once. */
  #wait(bytes: Buffer): Buffer {
    this.#held = bytes;
    const isWhole = bytes.includes(LF);
    const line = bytes.toString('latin1', 0, isWhole ? bytes.indexOf(LF) : LONGEST_STATUS_LINE);
    const status = isWhole ? statusOf(line) : null;
    const isGarbage = isWhole ? status === null : !mayBeginAnswer(line);
    if (isGarbage) this.garbage = quoted(line.slice(0, QUOTED_CHARACTERS));
    else if (status !== null && status >= 200) this.statusCode = status;
    if (!isGarbage && bytes.length <= HEAD_LIMIT_BYTES) return NO_BYTES;
    const rest = this.#giveUp();
    // As it is, the parser might take it for an answer of another protocol.
    return isGarbage ? NOT_HTTP : rest;
  }

  #giveUp(): Buffer {
    const bytes = this.#held ?? NO_BYTES;
    this.#held = null;
    return bytes;
  }
}

/** What came does not follow HTTP; what was cut off did, as far as it came. */
export function isUnreadable(error: Error): boolean {
  if (error instanceof errors.HeadersOverflowError) return true;
  return error instanceof errors.HTTPParserError && error.code !== 'HPE_INVALID_EOF_STATE';
}

const [LF, CR] = [10, 13];
const LONGEST_STATUS_LINE = 8 * 1024;

/** Of a line that has not ended. */
function mayBeginAnswer(line: string): boolean {
  return 'HTTP/'.startsWith(line.slice(0, 5).toUpperCase()) && line.length < LONGEST_STATUS_LINE;
}

function quoted(text: string): string {
  return text.trimEnd().replace(/[^\x20-\x7e]/g, '.');
}
