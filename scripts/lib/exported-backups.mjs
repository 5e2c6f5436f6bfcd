/**
 * A backup that is exported from the database of one server, which is killed meanwhile, and imported into that of
 * another one, which is killed meanwhile, too; then all rows are compared, and nothing may be left over.
 */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { capture, ROOT, secondsSince } from './repository.mjs';
import { edubbaCommand, startServer } from './server.mjs';

const VALUE_BYTES = 32 << 10;
const ROWS_AT_ONCE = 16;
const READY = /listening on (\S+:\d+)/;
/** A backup of the table has a file of each. */
const TABLETS = 24;
const KILLS = 3;
const MIB = 1 << 20;

/**
 * @param {import('./report.mjs').Report} report
 * @param {object} options
 * @param {string} options.scratch A directory for both databases.
 * @param {string} options.store The address of the backup store.
 * @param {Record<string, string>} [options.env] Credentials.
 * @param {number} options.mib The size of the table.
 * @param {() => Promise<readonly string[]>} options.listStore The paths of all files in the store.
 */
export async function exportUnderKills(report, { scratch, store, env = {}, mib, listStore }) {
  const { Code, connect, RowMutation } = await import('../../dist/src/embedded/index.js');
  /** @param {string} directory */
  const start = (directory) => {
    const [program = '', ...words] = edubbaCommand(join(scratch, directory));
    return startServer(directory, program, [...words, '--backup-store', store], READY, undefined, {
      ...process.env,
      ...env,
    });
  };

  /**
   * Makes the call, on servers that are killed after some of `tookMs`, until it is answered.
   *
   * @param {string} directory
   * @param {number} tookMs
   * @param {(database: import('../../dist/src/embedded/index.js').Database) => Promise<unknown>} call
   */
  const underKills = async (directory, tookMs, call) => {
    let cut = 0;
    for (let i = 1; ; i++) {
      const server = await start(directory);
      const database = await connect(server.address);
      const isKilled = i <= KILLS;
      const timer = isKilled ? setTimeout(() => void server.kill('SIGKILL'), (tookMs * i) / (KILLS + 1)) : undefined;
      const failure = await call(database).then(
        () => undefined,
        (/** @type {Error} */ error) => error,
      );
      clearTimeout(timer);
      await database.close().catch(() => {});
      await server.kill(isKilled ? 'SIGKILL' : 'SIGTERM');
      if (failure === undefined) return cut;
      if (!isKilled) throw failure;
      cut++;
    }
  };

  const first = await start('exporting');
  const writing = await connect(first.address);
  const rows = (mib * MIB) / VALUE_BYTES;
  const splits = Array.from({ length: TABLETS - 1 }, (_, i) => rowAt(Math.floor(((i + 1) * rows) / TABLETS)));
  const table = await writing.createTable('t', { families: { f: { maxVersions: 1 } }, splits });
  /** @type {Map<string, string>} */
  const written = new Map();
  for (let at = 0; at < rows; at += ROWS_AT_ONCE) {
    const batch = Array.from({ length: ROWS_AT_ONCE }, (_, i) => {
      const [row, value] = [rowAt(at + i), randomBytes(VALUE_BYTES)];
      written.set(row, digestOf(value));
      return new RowMutation(row).set('f:q', value);
    });
    await table.applyAll(batch);
  }
  const { sizeBytes } = await writing.createBackup('t', 'b');
  const sinceMs = performance.now();
  const { files } = await writing.backupStore.export('b', { id: 'timed' });
  const tookMs = performance.now() - sinceMs;
  report.pass(
    `${(sizeBytes / MIB).toFixed(0)} MiB are exported`,
    `${files} files, ${(tookMs / 1000).toFixed(2)} s, ${(sizeBytes / MIB / (tookMs / 1000)).toFixed(0)} MiB/s`,
  );
  await writing.backupStore.delete('timed');
  await table.deleteAllRows();
  await writing.close();
  await first.kill();

  const exports = await underKills('exporting', tookMs, (database) => database.backupStore.export('b'));
  const stored = await listStore();
  report.check(
    stored.length === files + 2,
    `a server that is killed exports the backup in the end: ${exports} attempts were cut short`,
    `${stored.length} files in the store, ${files + 2} expected${stored.length === files + 2 ? '' : `: ${stored.join(', ')}`}`,
  );
  const started = performance.now();
  const imports = await underKills('importing', tookMs, async (database) => {
    await database.backupStore.import('b', 'c').catch((/** @type {{ code: number }} */ error) => {
      // an attempt whose answer was lost has made it
      if (error.code !== Code.ALREADY_EXISTS) throw error;
    });
  });
  const other = await start('importing');
  const reading = await connect(other.address);
  const restored = await reading.restoreTable('c', 't');
  let wrong = 0;
  let read = 0;
  for await (const row of restored.scan()) {
    read++;
    if (digestOf(row.get('f:q')?.value ?? Buffer.alloc(0)) !== written.get(row.name)) wrong++;
  }
  report.check(
    read === written.size && wrong === 0,
    `a server that is killed imports it in the end: ${imports} attempts were cut short`,
    `${read} of ${written.size} rows, ${wrong} of them wrong, ${secondsSince(started)}`,
  );
  await reading.backupStore.delete('b');
  const left = await listStore();
  report.check(left.length === 0, 'nothing is left in the store', left.join(', '));
  await reading.close();
  await other.kill();
  const [program = ''] = edubbaCommand('');
  const words = ['--dir', join(scratch, 'importing'), 'inspect', 'check'];
  const checked = await capture(program, [join(ROOT, 'bin', 'edubba'), ...words]);
  report.check(
    checked.status === 0,
    'inspect check finds nothing',
    checked.status === 0 ? '' : checked.out + checked.err,
  );
}

/** @param {number} index */
function rowAt(index) {
  return `row-${String(index).padStart(6, '0')}`;
}

/** @param {Uint8Array} value */
function digestOf(value) {
  return createHash('sha256').update(value).digest('base64');
}
