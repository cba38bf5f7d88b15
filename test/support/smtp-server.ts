import { type AddressInfo, type Socket, createServer } from 'node:net';
import { TLSSocket, createSecureContext } from 'node:tls';
import { onTestFinished } from 'vitest';

/** One mail that it took, or began to take. */
interface TakenMail {
  /** The user who logged in; null: nobody did. */
  user: string | null;
  isEncrypted: boolean;
  from: string;
  to: string[];
  text: string;
}

interface SmtpOptions {
  /** Offers STARTTLS, or speaks TLS from the first byte on. */
  certified?: { cert: string; key: string };
  mode?: 'plain' | 'startTls' | 'tls';
  /** Lets in only who knows it; null: anybody. */
  password?: string | null;
  /** What it answers to a line, or to the end of a text (`.`), instead; `close`: nothing, and it hangs up; `silence`: nothing. */
  instead?: (line: string) => string | undefined;
  /** Before anything else. */
  greeting?: string;
}

interface SmtpStandIn {
  port: number;
  mails: TakenMail[];
  /** All lines of clients, also of those that were refused. */
  lines: string[];
}

/** A mail server on loopback, as far as a client that sends one mail needs it (RFC 5321, 3207, 4954). */
export async function startSmtp(options: SmtpOptions = {}): Promise<SmtpStandIn> {
  const { mode = 'plain' } = options;
  const standIn: SmtpStandIn = { port: 0, mails: [], lines: [] };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    new Conversation(standIn, options, mode === 'tls' ? secured(socket, options) : socket, mode === 'tls').greet();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  standIn.port = (server.address() as AddressInfo).port;
  return standIn;
}

function secured(socket: Socket, { certified }: SmtpOptions): TLSSocket {
  const tls = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(certified) });
  tls.on('error', () => undefined);
  return tls;
}

class Conversation {
  readonly #standIn: SmtpStandIn;
  readonly #options: SmtpOptions;
  #socket: Socket;
  #isEncrypted: boolean;
  #user: string | null = null;
  #mail: TakenMail | null = null;
  #readsText = false;
  #rest = '';

  constructor(standIn: SmtpStandIn, options: SmtpOptions, socket: Socket, isEncrypted: boolean) {
    this.#standIn = standIn;
    this.#options = options;
    this.#socket = socket;
    this.#isEncrypted = isEncrypted;
    this.#listen();
  }

  greet(): void {
    this.#say(this.#options.greeting ?? '220 stand-in ESMTP');
  }

  #listen(): void {
    this.#socket.on('data', (chunk: Buffer) => {
      this.#rest += chunk.toString();
      for (let end = this.#rest.indexOf('\r\n'); end >= 0; end = this.#rest.indexOf('\r\n')) {
        const line = this.#rest.slice(0, end);
        this.#rest = this.#rest.slice(end + 2);
        this.#hear(line);
      }
    });
  }

  #say(line: string): void {
    if (line === 'close') this.#socket.destroy();
    else if (line !== 'silence') this.#socket.write(`${line}\r\n`);
  }

  #hear(line: string): void {
    if (this.#readsText && line !== '.') {
      if (this.#mail) this.#mail.text += `${line}\n`;
      const instead = this.#options.instead?.(line);
      if (instead !== undefined) this.#say(instead);
      return;
    }
    this.#standIn.lines.push(line);
    const instead = this.#options.instead?.(line);
    if (instead !== undefined) this.#say(instead);
    else this.#answer(line);
  }

  #answer(line: string): void {
    const verb = line.slice(0, 4).toUpperCase();
    if (line === '.') {
      this.#readsText = false;
      if (this.#mail) this.#standIn.mails.push(this.#mail);
      this.#say('250 2.0.0 queued as 4711');
    } else if (verb === 'EHLO') this.#say(this.#extensions());
    else if (verb === 'STAR') this.#encrypt();
    else if (verb === 'AUTH') this.#logIn(line);
    else if (verb === 'MAIL') {
      const [user, isEncrypted] = [this.#user, this.#isEncrypted];
      this.#mail = { user, isEncrypted, from: addressIn(line), to: [], text: '' };
      this.#say('250 2.1.0 ok');
    } else if (verb === 'RCPT') {
      this.#mail?.to.push(addressIn(line));
      this.#say('250 2.1.5 ok');
    } else if (verb === 'DATA') {
      this.#readsText = true;
      this.#say('354 go on');
    } else this.#say(verb === 'QUIT' ? '221 bye' : '502 unknown');
  }

  #extensions(): string {
    const { mode = 'plain', password = null } = this.#options;
    const lines = ['stand-in', '8BITMIME'];
    if (mode === 'startTls' && !this.#isEncrypted) lines.push('STARTTLS');
    if (password !== null) lines.push('AUTH PLAIN');
    return lines.map((one, index) => `250${index === lines.length - 1 ? ' ' : '-'}${one}`).join('\r\n');
  }

  #encrypt(): void {
    this.#socket.removeAllListeners('data');
    this.#socket.write('220 go on\r\n');
    this.#socket = secured(this.#socket, this.#options);
    this.#isEncrypted = true;
    this.#listen();
  }

  #logIn(line: string): void {
    const [, user = '', password] = Buffer.from(line.split(' ')[2] ?? '', 'base64')
      .toString()
      .split('\0');
    if (password !== this.#options.password) this.#say('535 5.7.8 no');
    else {
      this.#user = user;
      this.#say('235 2.7.0 welcome');
    }
  }
}

function addressIn(line: string): string {
  return /<([^>]*)>/.exec(line)?.[1] ?? '';
}
