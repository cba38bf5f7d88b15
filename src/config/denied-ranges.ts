/** `default` of FIRELOCK_TARGET_DENY_CIDRS: addresses that no target needs and an attacker wants. */
const DEFAULT = [
  // Unspecified: Linux connects to this machine.
  '0.0.0.0/8',
  '::/128',
  // Link-local: the metadata services of most clouds, which hand out credentials.
  '169.254.0.0/16',
  'fe80::/10',
  // Metadata services that are not link-local: Alibaba, Azure, Oracle (two), AWS, Google, Scaleway.
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:c1::a9fe:a9fe/128',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  // Multicast and broadcast.
  '224.0.0.0/4',
  '255.255.255.255/32',
  'ff00::/8',
];

/** Everything that IANA's registries of special-purpose addresses do not call globally reachable: only the public Internet is left. */
const NOT_PUBLIC = [
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '240.0.0.0/4',
  '::1/128',
  '100::/64',
  '100:0:0:1::/64',
  '2001:2::/48',
  '2001:10::/28',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fec0::/10',
];

export const DENIED_PRESETS = { default: DEFAULT, strict: [...DEFAULT, ...NOT_PUBLIC] };
