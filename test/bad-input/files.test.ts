/**
 * Damage on disk: every kind of file of a database directory is changed byte by byte, cut short and removed, each time
 * in a copy, and the copy is opened and read whole. The outcome must be exactly the data that was written, or an error
 * in words; never other data, missing data, a hang or an end of the process. After an error the file is put back, and
 * everything must be there: refusing costs nothing.
 *
 * EDUBBA_CORRUPTION_STRIDE=N damages every N-th byte of every file in place of a choice; EDUBBA_SEED=N chooses others.
 */
import assert from 'node:assert/strict';
import { copyFile, link, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BigtableError, Code, codeName } from '../../src/base/index.ts';
import { openDatabase } from '../../src/boot/index.ts';
import { open, RowMutation } from '../../src/embedded/index.ts';
import { type Logger, type RequestContext, requestContext, SeededRandom, silentLogger } from '../../src/env/index.ts';
import type { TableSchema } from '../../src/model/index.ts';
import { cannotBeSeen, type Damage, damagesOf, isNotSeenYet, KINDS } from './damages.ts';

const SEED = Number(process.env['EDUBBA_SEED'] ?? 1);
const STRIDE =
  process.env['EDUBBA_CORRUPTION_STRIDE'] === undefined ? undefined : Number(process.env['EDUBBA_CORRUPTION_STRIDE']);
/** Copies opened at once: most of their time is waiting for the disk. */
const AT_ONCE = 8;
/**
 * A read is waited for so long; where a tablet could not be loaded, by a database that has said so, no longer than
 * that.
 */
const READ_MS = 5000;
const HOPELESS_READ_MS = 100;
const MAX_MS = 30_000;
/** Allowed answers if a file is damaged. */
const HONEST: readonly Code[] = [Code.DATA_LOSS, Code.FAILED_PRECONDITION, Code.NOT_FOUND];

/** Everything in the database, a line a fact; and what was said instead. */
interface Contents {
  readonly lines: readonly string[];
  readonly errors: readonly BigtableError[];
  /** Errors and warnings of the log. */
  readonly told: readonly string[];
}

function asBigtableError(thrown: unknown): BigtableError {
  assert.ok(
    thrown instanceof BigtableError,
    `not a BigtableError: ${thrown instanceof Error ? thrown.stack : String(thrown)}`,
  );
  return thrown;
}

/** Opens the directory and reads all of it: each table whole or in error. */
async function contentsOf(directory: string): Promise<Contents> {
  const lines: string[] = [];
  const errors: BigtableError[] = [];
  const told: string[] = [];
  const tell = (message: string, fields?: object): void => void told.push(`${message} ${JSON.stringify(fields ?? {})}`);
  const logger: Logger = { ...silentLogger, warn: tell, error: tell };
  let database: Awaited<ReturnType<typeof openDatabase>>;
  try {
    database = await openDatabase({ directory, logger });
  } catch (error) {
    return { lines, errors: [asBigtableError(error)], told };
  }
  const { service, env, close } = database;
  const context = (patienceMs: number) =>
    requestContext({ budget: env.requestBudget, deadlineMs: env.clock.monotonicMs() + patienceMs });
  /** Where the deadline was over before anything was found out, as on a busy machine, there is more time. */
  const patiently = async <T>(call: (context: RequestContext) => Promise<T>): Promise<T> => {
    for (let patienceMs = told.length === 0 ? READ_MS : HOPELESS_READ_MS; ; patienceMs *= 4) {
      try {
        return await call(context(patienceMs));
      } catch (error) {
        if (asBigtableError(error).code !== Code.DEADLINE_EXCEEDED || patienceMs >= READ_MS) throw error;
      }
    }
  };
  const linesOf = async (schema: TableSchema, asked: RequestContext): Promise<string[]> => {
    const rows = [JSON.stringify(schema)];
    for await (const { fragments } of service.readRows(asked, { table: schema.name })) {
      for (const { row, cells } of fragments) {
        for (const { family, qualifier, timestamp, value } of cells)
          rows.push(`${schema.name} ${row} ${family}:${qualifier}@${timestamp}=${Buffer.from(value).toString('hex')}`);
      }
    }
    rows.push(`${schema.name}: ${rows.length - 1} cells`);
    return rows;
  };
  try {
    const tables = (await patiently((asked) => service.listTables(asked, ''))).map(async (schema) => {
      try {
        return await patiently((asked) => linesOf(schema, asked));
      } catch (error) {
        errors.push(asBigtableError(error));
        return [JSON.stringify(schema)];
      }
    });
    lines.push(...(await Promise.all(tables)).flat());
    assert.equal(env.requestBudget.usedBytes, 0, 'bytes are reserved that no call holds');
  } finally {
    await close();
  }
  return { lines, errors, told };
}

/** Two lives: what the first wrote lies in SSTables, what the second wrote in its log. */
async function makeDatabase(directory: string): Promise<void> {
  for (const life of [1, 2]) {
    const database = await open(directory);
    if (life === 1) {
      await database.createTable('pages', {
        families: { text: {}, links: { gcRule: { kind: 'maxVersions', versions: 3 } } },
        splits: ['m'],
        granularity: 'millis',
      });
      await database.createTable('counters', { families: { n: { aggregate: 'sum' } } });
    }
    for (const row of ['com.cnn.www', 'com.example', 'org.wikipedia', 'org.zoo']) {
      await database
        .table('pages')
        .apply(
          new RowMutation(row)
            .set('text:en', `page ${row} of life ${life}`, life * 1000)
            .set(`links:${life}`, 'x'.repeat(40), 1000),
        );
    }
    await database.table('pages').apply(new RowMutation(`only.${life}`).set('text:', Buffer.alloc(300, life), 1000));
    await database.table('pages').apply(new RowMutation('org.zoo').delete(`links:${life - 1}`));
    for (let i = 0; i < 5; i++) await database.table('counters').apply(new RowMutation('visits').add('n:all', i, 0));
    if (life === 1) await database.flush();
    else await database.createTable('late', { families: { f: {} } });
    await database.close();
  }
}

async function filesIn(directory: string): Promise<string[]> {
  const paths: string[] = [];
  for (const name of await readdir(directory, { recursive: true }))
    if ((await stat(join(directory, name))).isFile()) paths.push(name);
  return paths.sort();
}

/** A copy that shares with the original the files that are never changed in place. */
async function copyOf(original: string, paths: readonly string[], to: string): Promise<void> {
  const made = new Set<string>();
  for (const path of paths) {
    const target = join(to, path);
    if (!made.has(dirname(target))) await mkdir(dirname(target), { recursive: true });
    made.add(dirname(target));
    if (path === 'LOCK') await copyFile(join(original, path), target);
    else await link(join(original, path), target);
  }
}

async function inflict(directory: string, original: string, { path, kind, at, mask }: Damage): Promise<void> {
  const target = join(directory, path);
  await rm(target);
  if (kind === 'removed') return;
  await copyFile(join(original, path), target);
  if (kind === 'cut') return truncate(target, at);
  const bytes = await readFile(target);
  bytes[at] = (bytes[at] as number) ^ mask;
  await writeFile(target, bytes);
}

function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>(
    (_, reject) => (timer = setTimeout(() => reject(new Error(`${what}: nothing after ${ms} ms`)), ms)),
  );
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

describe('a database with a damaged file', () => {
  let home: string;
  let original: string;
  let paths: string[];
  let expected: readonly string[];
  let copies = 0;
  const tally = new Map<string, number>();

  // the clock's own timers do not keep a process alive
  const alive = setInterval(() => {}, 1000);
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'edubba-damage-'));
    original = join(home, 'original');
    await makeDatabase(original);
    paths = await filesIn(original);
    for (const path of paths)
      assert.ok(
        KINDS.some(({ pattern }) => pattern.test(path)),
        `a file of no known kind: ${path}`,
      );
    const whole = join(home, 'whole');
    await copyOf(original, paths, whole);
    const contents = await contentsOf(whole);
    assert.deepEqual(contents.errors, []);
    expected = contents.lines;
  });
  after(async () => {
    clearInterval(alive);
    await rm(home, { recursive: true, force: true });
  });

  /** The outcome of the damage, in a word; fails if data is wrong or missing. */
  async function suffer(damage: Damage, putBack: boolean): Promise<string> {
    const directory = join(home, `copy-${++copies}`);
    await copyOf(original, paths, directory);
    await inflict(directory, original, damage);
    const { lines, errors } = await contentsOf(directory);
    const strange = lines.filter((line) => !expected.includes(line));
    assert.deepEqual(strange, [], 'data that was never written');
    const whole = lines.length === expected.length;
    if (whole) assert.deepEqual(lines, expected);
    if (errors.length === 0 && !whole) {
      assert.fail(
        `data is missing and no error says so: ${expected
          .filter((line) => !lines.includes(line))
          .slice(0, 5)
          .join(' | ')}`,
      );
    }
    const file = damage.path.replace(/^files\//, '');
    for (const { code, message } of errors) {
      assert.ok(HONEST.includes(code), `${codeName(code)}: ${message}`);
      assert.ok(
        code === Code.FAILED_PRECONDITION || message.includes(file) || message.includes(logOf(file) ?? dirname(file)),
        `the file is not named: ${codeName(code)} ${message}`,
      );
    }
    if (errors.length > 0 && putBack) {
      await rm(join(directory, damage.path), { force: true });
      await copyFile(join(original, damage.path), join(directory, damage.path));
      const again = await contentsOf(directory);
      assert.deepEqual(again.errors, [], 'the file was put back');
      assert.deepEqual(again.lines, expected, 'the file was put back');
    }
    await rm(directory, { recursive: true });
    return errors.length === 0 ? 'right' : codeName((errors[0] as BigtableError).code);
  }

  async function damagesOfAll(pattern: RegExp, random: SeededRandom): Promise<Damage[]> {
    const all: Damage[] = [];
    for (const path of paths.filter((each) => pattern.test(each)))
      all.push(...damagesOf(path, await readFile(join(original, path)), random, STRIDE));
    return all;
  }

  /** The root tablet's location, by which everything else is found. */
  async function isRoot(path: string): Promise<boolean> {
    return (
      path.startsWith('files/lock-service/files/') &&
      (await readFile(join(original, path))).subarray(36, 40).toString() === 'root'
    );
  }

  for (const kind of KINDS) {
    test(kind.name, { timeout: 600_000 }, async () => {
      const random = new SeededRandom(SEED);
      const damages = await damagesOfAll(kind.pattern, random);
      assert.ok(damages.length > 0, `there is no ${kind.name}`);
      const failures: string[] = [];
      const next = damages.values();
      const worker = async (): Promise<void> => {
        for (const damage of next) {
          const root = await isRoot(damage.path);
          if (isNotSeenYet(damage, root)) continue;
          const what = wordsOf(damage);
          try {
            const outcome = await within(
              MAX_MS,
              what,
              suffer(damage, random.float() < 0.2 || damage.kind === 'removed'),
            );
            tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
          } catch (error) {
            if (cannotBeSeen(damage, root)) tally.set('cannot be seen', (tally.get('cannot be seen') ?? 0) + 1);
            else failures.push(`${what}: ${error instanceof Error ? error.message : String(error)}`);
          }
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      assert.equal(
        failures.length,
        0,
        `seed ${SEED}: ${failures.length} of ${damages.length} damages:\n${failures.join('\n')}`,
      );
    });
  }

  test("the root tablet's location is removed", async () => {
    for (const path of paths)
      if (await isRoot(path)) assert.notEqual(await suffer({ path, kind: 'removed', at: 0, mask: 0 }, true), 'right');
  });

  test('a log that METADATA lists is removed', async () => {
    const segments = paths.filter((path) => path.endsWith('.segment'));
    const outcomes = new Set<string>();
    for (const path of segments) outcomes.add(await suffer({ path, kind: 'removed', at: 0, mask: 0 }, true));
    assert.ok(outcomes.has('DATA_LOSS'), [...outcomes].join());
  });

  after(() =>
    console.log(`damages by outcome: ${[...tally].map(([outcome, count]) => `${outcome} ${count}`).join(', ')}`),
  );
});

/** A log, of which segments are the parts, by the name that METADATA lists. */
function logOf(file: string): string | undefined {
  return /^logs\/(.*)\/[^/]*\.segment$/.exec(file)?.[1];
}

function wordsOf({ path, kind, at, mask }: Damage): string {
  return kind === 'removed'
    ? `${path} removed`
    : kind === 'cut'
      ? `${path} cut to ${at} bytes`
      : `${path}: byte ${at} changed by ${mask}`;
}
