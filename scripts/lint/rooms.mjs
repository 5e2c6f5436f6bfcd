/**
 * The rooms of src/: on which floor each stands, what it is, and which others it may import. The layer check
 * (.dependency-cruiser.mjs) keeps it; the table of docs/ARCHITECTURE.md is made from it (scripts/rooms.mjs). Any change
 * of it is a decision: docs/decisions/0002-layers.md.
 */

/** From the ground floor up. `imports` is exact: a room that needs another one asks for it here. */
export const ROOMS = [
  { floor: 1, room: 'base', what: 'byte strings, int64, varints, checksums, errors, assertions', imports: [] },

  {
    floor: 2,
    room: 'env',
    what: 'the five seams, request context, byte budget, telemetry; in-memory versions',
    imports: ['base'],
  },
  {
    floor: 2,
    room: 'model',
    what: 'cells, mutations, row sets, schemas, GC rules, aggregates, limits; entries and the layer cursor',
    imports: ['base'],
  },

  {
    floor: 2,
    room: 'protobuf',
    what: "protobuf's wire format, and messages defined in TypeScript",
    imports: ['base'],
  },

  {
    floor: 3,
    room: 'compress',
    what: "compression of blocks: LZ4, Zstandard, dictionaries, the paper's two passes",
    imports: ['base', 'env'],
  },
  {
    floor: 3,
    room: 'filter',
    what: 'the twenty row filters as data, and their interpreter',
    imports: ['base', 'model'],
  },
  { floor: 3, room: 'memtable', what: 'the sorted buffer of recent writes', imports: ['base', 'model'] },
  {
    floor: 3,
    room: 'metadata',
    what: "METADATA's rows and keys; schemas as files",
    imports: ['base', 'model'],
  },
  { floor: 3, room: 'commitlog', what: 'redo records, group commit, reading logs', imports: ['base', 'env', 'model'] },
  {
    floor: 3,
    room: 'wire',
    what: 'HTTP/2 and gRPC over sockets, with TLS, flow control and limits against hostile peers',
    imports: ['base', 'env'],
  },
  {
    floor: 3,
    room: 'auth',
    what: 'authentication: bearer tokens, tokens of an issuer, certificates',
    imports: ['base', 'env'],
  },

  {
    floor: 4,
    room: 'sstable',
    what: 'the immutable file of sorted entries, and the caches of its blocks and rows',
    imports: ['base', 'compress', 'env', 'model'],
  },
  { floor: 4, room: 'monitor', what: 'monitoring: metrics, probes, log lines', imports: ['base', 'env', 'wire'] },
  {
    floor: 4,
    room: 'platform',
    what: 'adapters that touch the machine: files, shared directories, S3, a read cache of either, directory lock, clock, threads, native codecs; the local lock service, and that on etcd',
    imports: ['base', 'compress', 'env', 'protobuf', 'wire'],
  },
  {
    floor: 4,
    room: 'service',
    what: "the Data and Admin interface in the model's words, and the checks of form",
    imports: ['base', 'env', 'filter', 'model'],
  },

  {
    floor: 5,
    room: 'tablet',
    what: 'one row range: layers by locality group, merged read, write path, compactions',
    imports: ['base', 'commitlog', 'env', 'filter', 'memtable', 'model', 'sstable'],
  },
  {
    floor: 5,
    room: 'protocol',
    what: 'the internal calls of master and tablet server as typed messages',
    imports: ['base', 'env', 'filter', 'metadata', 'model', 'protobuf', 'service'],
  },
  {
    floor: 5,
    room: 'inspect',
    what: 'looks inside every kind of file, checks all of it, and repairs METADATA',
    imports: ['base', 'commitlog', 'env', 'memtable', 'metadata', 'model', 'sstable'],
  },
  {
    floor: 5,
    room: 'grpc',
    what: 'the Cloud API, and `edubba.v1.Control` for operators, in terms of `service`, both sides',
    imports: ['base', 'env', 'filter', 'model', 'protobuf', 'service', 'wire'],
  },

  {
    floor: 5,
    room: 'access',
    what: 'rights: a guard before the service that keeps to the policies, and logs changes and refusals',
    imports: ['base', 'env', 'filter', 'model', 'service'],
  },
  {
    floor: 5,
    room: 'resources',
    what: 'instances, app profiles, views, schema bundles and policies as files of the lock service; caches of them',
    imports: ['base', 'env', 'metadata', 'model', 'service'],
  },

  {
    floor: 6,
    room: 'locator',
    what: 'where a row is served: the cached climb from `root` to user tablets',
    imports: ['base', 'env', 'filter', 'metadata', 'model', 'protocol'],
  },
  {
    floor: 6,
    room: 'network',
    what: 'the transport between processes: internal calls over the wire, between peers that prove who they are',
    imports: ['base', 'env', 'protobuf', 'protocol', 'wire'],
  },

  {
    floor: 7,
    room: 'tabletserver',
    what: 'serves tablets: log, memory, loading, METADATA commits',
    imports: ['base', 'commitlog', 'env', 'locator', 'metadata', 'model', 'protocol', 'service', 'sstable', 'tablet'],
  },
  {
    floor: 7,
    room: 'master',
    what: 'assigns tablets, creates and deletes tables, sweeps files',
    imports: ['base', 'commitlog', 'env', 'locator', 'metadata', 'model', 'protocol', 'resources', 'sstable'],
  },
  {
    floor: 7,
    room: 'client',
    what: 'implements `service` over `protocol`',
    imports: ['base', 'env', 'filter', 'locator', 'metadata', 'model', 'protocol', 'resources', 'service'],
  },

  {
    floor: 8,
    room: 'boot',
    what: 'settings -> adapters -> roles; gives a `service` for a directory or an address, starts the roles of a cluster',
    imports: [
      'base',
      'client',
      'env',
      'grpc',
      'inspect',
      'master',
      'model',
      'network',
      'platform',
      'protocol',
      'resources',
      'service',
      'sstable',
      'tablet',
      'tabletserver',
      'wire',
    ],
  },

  {
    floor: 9,
    room: 'embedded',
    what: 'the library: `open` a directory, `connect` to a server',
    imports: ['base', 'boot', 'env', 'filter', 'model', 'service'],
  },
  {
    floor: 9,
    room: 'server',
    what: 'the gRPC server',
    imports: ['access', 'auth', 'base', 'boot', 'env', 'grpc', 'monitor', 'service', 'wire'],
  },

  {
    floor: 10,
    room: 'cli',
    what: 'the command `edubba`',
    imports: ['auth', 'base', 'boot', 'embedded', 'env', 'inspect', 'model', 'monitor', 'server', 'service'],
  },
];

/** Rooms that may use Node's own modules. Elsewhere they come in through the seams of `env`. */
export const NODE_ROOMS = ['platform', 'wire', 'auth', 'monitor', 'network', 'boot', 'server', 'cli'];

/** Errors of the table itself: imports that do not lead to a lower floor. */
export function upwardImports() {
  const floorOf = new Map(ROOMS.map(({ room, floor }) => [room, floor]));
  return ROOMS.flatMap(({ room, floor, imports }) =>
    imports
      .filter((other) => (floorOf.get(other) ?? Number.POSITIVE_INFINITY) >= floor)
      .map((other) => `${room} on floor ${floor} imports ${other}, which is not below it`),
  );
}

/** The table as Markdown. */
export function roomsTable() {
  const rows = ROOMS.map(
    ({ floor, room, what, imports }) =>
      `| ${floor} | \`${room}\` | ${what} | ${imports.length > 0 ? imports.join(', ') : 'nothing'} |`,
  );
  return ['| floor | room | what it is | may import |', '|---|---|---|---|', ...rows, ''].join('\n');
}
