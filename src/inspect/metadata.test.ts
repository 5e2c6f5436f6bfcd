import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BigtableError, Code, CorruptionError } from '../base/index.ts';
import { openDatabase } from '../boot/index.ts';
import { type FileSystem, type LastingFile, requestContext } from '../env/index.ts';
import { METADATA_TABLE_ID } from '../metadata/index.ts';
import { type FileContents, type InspectedTablet, inspectMetadata, type MetadataComponents } from './metadata.ts';

type OpenDatabase = Awaited<ReturnType<typeof openDatabase>>;

const TABLES = 'projects/p/instances/i/tables/';

/** The parts of a database in this process that inspection reads. */
function componentsOf({ env }: OpenDatabase, fileSystem: FileSystem = env.fileSystem): MetadataComponents {
  const lockServiceFiles = async (): Promise<LastingFile[]> =>
    (await env.lockService.list('')).filter(({ sessionId }) => sessionId === undefined);
  return { fileSystem, codecs: env.codecs, clock: env.clock, lockServiceFiles };
}

async function tabletsOf(components: MetadataComponents): Promise<InspectedTablet[]> {
  const tablets: InspectedTablet[] = [];
  for await (const tablet of (await inspectMetadata(components)).tablets()) tablets.push(tablet);
  return tablets;
}

function context({ env }: OpenDatabase) {
  return requestContext({ budget: env.requestBudget });
}

async function create(database: OpenDatabase, name: string, splits: readonly string[] = []): Promise<void> {
  const table = {
    name: TABLES + name,
    families: [{ name: 'f' }],
    splits,
    granularity: 'micros',
    deletionProtection: false,
  } as const;
  await database.service.createTable(context(database), table);
}

async function write(database: OpenDatabase, table: string, rows: readonly string[]): Promise<void> {
  const value = Buffer.alloc(100, 1);
  for (const row of rows) {
    const mutations = [{ kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value }] as const;
    await database.service.mutateRow(context(database), TABLES + table, { row, mutations });
  }
}

/** Every tablet's range, by table. */
function rangesOf(tablets: readonly InspectedTablet[], tableId: string): (readonly [string, string | undefined])[] {
  return tablets
    .filter(({ row }) => row.tableId === tableId)
    .map(({ row }) => [row.range.start, row.range.end] as const);
}

async function withDatabase(work: (database: OpenDatabase) => Promise<void>): Promise<void> {
  const database = await openDatabase({ memory: true });
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

describe('inspecting METADATA', () => {
  test('shows a tablet whose row was deleted and made again, from files written before, between and after', () =>
    withDatabase(async (database) => {
      const table = `${TABLES}t`;
      await create(database, 't', ['m']);
      await write(database, 't', ['a', 'b', 'm', 'z']);
      const ranges = async () =>
        (await tabletsOf(componentsOf(database)))
          .filter(({ row }) => row.tableId !== METADATA_TABLE_ID)
          .map(({ row }) => [row.range.start, row.range.end]);
      const divided = [
        ['', 'm'],
        ['m', undefined],
      ];
      for (const flushesBetween of [false, true]) {
        await database.flush();
        await database.mergeTablets(table, 'm');
        if (flushesBetween) await database.flush();
        await database.splitTablet(table, 'm');
        assert.deepEqual(await ranges(), divided, 'from files and the log');
        await database.flush();
        assert.deepEqual(await ranges(), divided, 'from files');
      }
      await database.mergeTablets(table, 'm');
      await database.flush();
      assert.deepEqual(await ranges(), [['', undefined]]);
    }));

  test('shows every table and every tablet, from the log alone and from files', () =>
    withDatabase(async (database) => {
      await create(database, 'one', ['g', 'p']);
      await create(database, 'two');
      const inspected = await inspectMetadata(componentsOf(database));
      assert.deepEqual(
        inspected.schemas.map(({ name }) => name),
        [`${TABLES}one`, `${TABLES}two`],
      );
      assert.ok(inspected.lockFiles.some(({ path }) => path === 'root'));
      const [one, two] = inspected.schemas.map(({ id }) => id) as [string, string];
      const check = async (): Promise<InspectedTablet[]> => {
        const tablets = await tabletsOf(componentsOf(database));
        assert.deepEqual(
          tablets.map(({ rowIn }) => rowIn),
          ['root file', 'root tablet', 'METADATA', 'METADATA', 'METADATA', 'METADATA'],
        );
        assert.deepEqual(rangesOf(tablets, METADATA_TABLE_ID), [
          ['', '00000000\x02'],
          ['00000000\x02', undefined],
        ]);
        assert.deepEqual(rangesOf(tablets, one), [
          ['', 'g'],
          ['g', 'p'],
          ['p', undefined],
        ]);
        assert.deepEqual(rangesOf(tablets, two), [['', undefined]]);
        return tablets;
      };
      const before = await check();
      assert.ok(
        before.every(({ row }) => Object.values(row.files).flat().length === 0),
        'nothing was flushed yet',
      );
      await write(database, 'one', ['a', 'h', 'z']);
      await database.flush();
      const after = await check();
      const files = after.flatMap(({ row }) => Object.values(row.files).flat());
      assert.ok(files.length >= 4, `${files.length} files`);
      const listed = new Set((await database.env.fileSystem.list('')).map(({ path }) => path));
      assert.deepEqual(
        files.filter((path) => !listed.has(path)),
        [],
      );
      const newest = after.find(({ row }) => row.tableId === one);
      assert.deepEqual(
        newest?.events.map(({ kind }) => kind),
        ['compacted', 'assigned', 'created'],
      );
      assert.equal(newest?.row.version, 3);
    }));

  test('a deleted table is gone, whatever the files still hold', () =>
    withDatabase(async (database) => {
      await create(database, 'one', ['m']);
      await write(database, 'one', ['a', 'z']);
      await create(database, 'two');
      await database.flush();
      await database.service.deleteTable(context(database), `${TABLES}one`);
      const { schemas } = await inspectMetadata(componentsOf(database));
      assert.deepEqual(
        schemas.map(({ name }) => name),
        [`${TABLES}two`],
      );
      const users = (await tabletsOf(componentsOf(database))).filter(({ rowIn }) => rowIn === 'METADATA');
      assert.deepEqual(
        users.map(({ row }) => row.tableId),
        schemas.map(({ id }) => id),
      );
    }));

  test('METADATA that changes while it is read is shown as it is afterwards', () =>
    withDatabase(async (database) => {
      await create(database, 'one', ['m']);
      const { fileSystem } = database.env;
      let meddled = 0;
      // each of the first logs is read, and then METADATA's tablets are flushed and the files they had are deleted
      const meddler = new Proxy(fileSystem, {
        get: (target, name) => {
          if (name !== 'readLog') return Reflect.get(target, name, target)?.bind(target);
          return async function* (path: string, from?: number) {
            yield* target.readLog(path, from);
            if (meddled++ >= 3) return;
            await create(database, `made-meanwhile-${meddled}`);
            await database.flush();
            await database.sweep();
          };
        },
      });
      const tablets = await tabletsOf(componentsOf(database, meddler));
      assert.ok(meddled > 3);
      const ids = (await inspectMetadata(componentsOf(database))).schemas.map(({ id }) => id);
      assert.deepEqual(
        [...new Set(tablets.filter(({ rowIn }) => rowIn === 'METADATA').map(({ row }) => row.tableId))].sort(),
        ids.sort(),
      );
    }));

  test('METADATA that never stops changing fails with UNAVAILABLE', () =>
    withDatabase(async (database) => {
      await create(database, 'one');
      let version = 1000;
      const components = componentsOf(database);
      const lockServiceFiles = async (): Promise<LastingFile[]> =>
        (await components.lockServiceFiles()).map((file) => {
          if (file.path !== 'root') return file;
          return {
            ...file,
            contents: Buffer.from(
              Buffer.from(file.contents)
                .toString()
                .replace(/"version":\d+/, `"version":${version++}`),
            ),
          };
        });
      await assert.rejects(
        tabletsOf({ ...components, lockServiceFiles }),
        (error) => error instanceof BigtableError && error.code === Code.UNAVAILABLE,
      );
    }));

  test('a listed file that is missing is corruption, and so is a damaged root file', () =>
    withDatabase(async (database) => {
      await create(database, 'one');
      await database.flush();
      const components = componentsOf(database);
      const root = (await tabletsOf(components))[0] as InspectedTablet;
      const [lost] = Object.values(root.row.files).flat() as [string];
      await database.env.fileSystem.delete(lost);
      await assert.rejects(
        tabletsOf(components),
        (error) => error instanceof CorruptionError && error.message.includes(lost),
      );
      const lockServiceFiles = async (): Promise<LastingFile[]> =>
        (await components.lockServiceFiles()).map((file) =>
          file.path === 'root' ? { ...file, contents: Buffer.from('{') } : file,
        );
      await assert.rejects(tabletsOf({ ...components, lockServiceFiles }), CorruptionError);
    }));

  test('files that an earlier inspection has read are not read again, and the rows are the same', () =>
    withDatabase(async (database) => {
      const metadataFiles = new Map<string, FileContents>();
      const { fileSystem } = database.env;
      let reads = 0;
      const counting = new Proxy(fileSystem, {
        get: (target, name) => {
          if (name !== 'read' && name !== 'readNow') return Reflect.get(target, name, target)?.bind(target);
          return (...args: Parameters<FileSystem['read']>) => {
            reads++;
            return target[name]?.(...args);
          };
        },
      });
      for (const name of ['one', 'two', 'three']) {
        await create(database, name, ['m']);
        await database.flush();
        // read from files, and then from the log, too
        for (const later of ['later', 'last']) {
          const expected = await tabletsOf(componentsOf(database));
          const components: MetadataComponents = { ...componentsOf(database, counting), metadataFiles };
          assert.deepEqual(await tabletsOf(components), expected);
          reads = 0;
          assert.deepEqual(await tabletsOf(components), expected);
          assert.equal(reads, 0, 'all files are known');
          await create(database, `${name}-${later}`);
        }
      }
      assert.ok(metadataFiles.size > 0);
    }));

  test('without a database there are no tablets', () =>
    withDatabase(async (database) => {
      const empty = { ...componentsOf(database), lockServiceFiles: async () => [] };
      assert.deepEqual(await tabletsOf(empty), []);
      assert.deepEqual((await inspectMetadata(empty)).schemas, []);
    }));
});
