import type { Connection, SecretFile } from '../../../../clients/typescript/src/generated/types.gen.ts';
import type { Column } from '../../parts/lists/table.tsx';
import { NamedPage, VERSION } from '../../parts/named/named-page.tsx';
import { ConnectionForm } from './connection-form.tsx';

export function Connections() {
  return (
    <NamedPage<Connection>
      noun="connection"
      about="A connection says where a system is and how to log in to it, for all targets that name it."
      {...{ columns: COLUMNS, Form: ConnectionForm }}
    />
  );
}

const COLUMNS: readonly Column<Connection>[] = [
  { head: 'URL', cell: ({ url }) => <span class="user">{url}</span> },
  { head: 'Logs in', cell: ({ auth }) => <LogIn auth={auth} /> },
  { head: 'Sends and checks', cell: (connection) => <More connection={connection} /> },
  ...VERSION,
];

function LogIn({ auth }: Pick<Connection, 'auth'>) {
  switch (auth?.type) {
    case undefined:
      return <span class="quiet">not at all</span>;
    case 'bearer':
      return <>by a token{fromFile(auth.token)}</>;
    case 'basic':
      return (
        <>
          as <span class="user">{auth.username}</span>
          {fromFile(auth.password)}
        </>
      );
    case 'oauth2':
      return (
        <>
          as <span class="user">{auth.clientId}</span>
          {fromFile(auth.clientSecret)}, by a token of <span class="user">{auth.tokenUrl}</span>
        </>
      );
  }
}

/** The names of its headers, and which certificates it has. */
function More({ connection: { headers, tls } }: { connection: Connection }) {
  const certificates = [
    ['authorities', tls?.ca],
    ['client certificate', tls?.cert],
    ['private key', tls?.key],
  ] as const;
  const parts = [
    ...Object.entries(headers),
    ...certificates.flatMap(([name, value]) => (value === null || value === undefined ? [] : [[name, value] as const])),
  ];
  return (
    <>
      {parts.map(([name, value]) => (
        <span key={name} class="label user">
          {name}
          {fromFile(value)}
        </span>
      ))}
    </>
  );
}

function fromFile(value: string | SecretFile): string {
  return typeof value === 'string' ? '' : ` (file ${value.file})`;
}
