/**
 * The layers of src/: which room may import which (scripts/lint/rooms.mjs), which folder of a room which other, and where packages are used.
 * docs/ARCHITECTURE.md explains the rooms. `npm run check` runs it; type-only imports count like others.
 */
import { NODE_ROOMS, ROOMS } from './scripts/lint/rooms.mjs';

/**
 * Room -> its folders, from its ground: files of one may import those of its own folder and of the folders before it. Files
 * that stand outside of folders are the room's top: they may import all of the room, and no folder's file imports them.
 */
const FOLDERS = {
  // shares of memory / what the world has to offer / what a call carries, how it travels / all in memory
  env: ['budget', 'seams', 'calls', 'memory', 'slots'],
  model: ['hll'],
  // the file's parts as bytes / blocks and cursors over them / making a file / blocks and rows that stay in memory
  sstable: ['format', 'read', 'write', 'cache'],
  // clock, random numbers, the process / modules in threads / calls between threads / compression / files and logs /
  // the directory's lock and the lock service / a whole directory / the lock service on etcd /
  // a directory that many machines share / a bucket / a local cache of either
  platform: ['machine', 'threads', 'ports', 'codecs', 'posix', 'locks', 'directory', 'etcd', 'shared', 's3', 'read-cache'],
  // what servers, clients and handlers are to one another / headers / frames and streams / messages / calls as handlers, as callers see them
  wire: ['contract', 'hpack', 'http2', 'grpc', 'server', 'client'],
  // messages of protobuf-es / fields as bytes / statuses / the model to messages and back / requests and answers as bytes / both sides
  grpc: ['generated', 'bytes', 'rpc', 'convert', 'codec', 'client', 'server'],
  // what tablet and server are to each other / files and memtables by age / the merged read / rows, log / compactions
  tablet: ['contract', 'layers', 'read', 'write', 'compact'],
  // tables of settings / looks at a directory, and its repair / stores by their addresses / one database, here or
  // elsewhere / a server's threads / processes of a cluster
  boot: ['settings', 'directory', 'store', 'open', 'threads', 'cluster'],
  // what users write and see / how a call ends and fails / reads and changes of rows / options of tables and families
  embedded: ['values', 'calls', 'rows', 'schema'],
  // how answers are printed / words that commands take / settings of a server / programs that serve / the rest: commands by theme
  cli: ['output', 'arguments', 'settings', 'serve', 'cluster', 'inspect', 'completion', 'commands'],
};

/** npm package -> the rooms that may import it. */
const PACKAGES = {
  '@aws-sdk/credential-provider-node': ['platform'],
  '@bokuweb/zstd-wasm': ['platform'],
  '@bufbuild/protobuf': ['grpc'],
  '@node-rs/crc32': ['platform'],
  commander: ['cli'],
  jose: ['auth'],
  'fs-native-extensions': ['platform'],
  'lz4-napi': ['platform'],
  'prom-client': ['monitor'],
  re2js: ['filter'],
  '@smithy/signature-v4': ['platform'],
  'smol-toml': ['cli'],
};

/** Tests, and what a room has for its tests only. */
const TEST = '(\\.test|/fixtures)\\.ts$';
const oneOf = (names) => `(${names.join('|')})`;

const layers = ROOMS.map(({ room, imports }) => ({
  name: `layer-${room}`,
  comment: `${room} may import ${imports.length > 0 ? imports.join(', ') : 'no other room'}`,
  severity: 'error',
  from: { path: `^src/${room}/`, pathNot: TEST },
  to: { path: '^src/', pathNot: `^src/${oneOf([room, ...imports])}/` },
}));

const folders = Object.entries(FOLDERS).flatMap(([room, names]) => [
  ...names.map((name, floor) => ({
    name: `folder-${room}-${name}`,
    comment: `of its room, ${room}/${name} may import ${floor > 0 ? names.slice(0, floor).join(', ') : 'no other folder'}`,
    severity: 'error',
    from: { path: `^src/${room}/${name}/`, pathNot: TEST },
    to: { path: `^src/${room}/`, pathNot: `^src/${room}/${oneOf(names.slice(0, floor + 1))}/` },
  })),
  {
    name: `known-folders-${room}`,
    comment: `every folder of ${room} is in the table of folders`,
    severity: 'error',
    from: {},
    to: { path: `^src/${room}/[^/]+/`, pathNot: `^src/${room}/${oneOf(names)}/` },
  },
]);

const packages = Object.entries(PACKAGES).map(([name, rooms]) => ({
  name: `package-${name}`,
  comment: `only ${rooms.join(', ')} may import ${name}`,
  severity: 'error',
  from: { path: '^src/', pathNot: [`^src/${oneOf(rooms)}/`, TEST] },
  to: { path: `(^|/)node_modules/${name}/` },
}));

export default {
  forbidden: [
    ...layers,
    ...folders,
    ...packages,
    {
      name: 'known-rooms',
      comment: 'every folder of src is a room of the table',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: `^src/${oneOf(ROOMS.map(({ room }) => room))}/` },
    },
    {
      name: 'by-the-door',
      comment: 'a room is entered from others only by its index.ts',
      severity: 'error',
      from: { path: '^src/([^/]+)/' },
      to: { path: '^src/[^/]+/.+', pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$'] },
    },
    {
      name: 'by-the-door-from-outside',
      comment: 'tests, examples and scripts enter a room only by its index.ts; planted faults lie inside the rooms',
      severity: 'error',
      from: { pathNot: ['^src/', '^test/planted/'] },
      to: { path: '^src/', pathNot: '^src/[^/]+/index\\.ts$' },
    },
    {
      name: 'not-by-the-own-door',
      comment: 'a room does not import its own index.ts',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: TEST },
      to: { path: '^src/$1/index\\.ts$' },
    },
    { name: 'no-circles', comment: 'no circle of files, types included', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'node-modules-of-node',
      comment: `Node's own modules only in ${NODE_ROOMS.join(', ')}: elsewhere they come in through the seams of env (their types may be named)`,
      severity: 'error',
      from: { path: '^src/', pathNot: [`^src/${oneOf(NODE_ROOMS)}/`, TEST] },
      to: { dependencyTypes: ['core'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'product-alone',
      comment: 'nothing in src imports what stands around it',
      severity: 'error',
      from: { path: '^src/', pathNot: TEST },
      to: { path: '^(test|bench|examples|scripts|console|sim)/' },
    },
    { name: 'tests-are-ends', comment: 'product code does not import what is there for tests', severity: 'error', from: { pathNot: [TEST, '^test/'] }, to: { path: TEST } },
    {
      name: 'declared-packages',
      comment: 'product code imports only dependencies that package.json declares, and each has its rooms in the table',
      severity: 'error',
      from: { path: '^src/', pathNot: TEST },
      to: { path: '(^|/)node_modules/', pathNot: `(^|/)node_modules/${oneOf(Object.keys(PACKAGES))}/` },
    },
    { name: 'resolvable', comment: 'every import leads somewhere', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|bench/btbench|test/interop)/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default', 'types'] },
  },
};
