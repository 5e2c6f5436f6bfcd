/**
 * The program that scripts/upgrade.mjs runs with either build: node upgrade-program.mjs BUILD DIRECTORY write|kill|read
 * TAG
 *
 * write: rows of TAG in every state that rows have: in files, compacted, split and in the log alone; then the database
 * is closed. kill: the same, and the process ends by SIGKILL instead. read: looks for every row of TAG, and fails where
 * one is missing or wrong. What the library of an old commit lacks is left out.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const BATCHES = 40;
const BATCH_ROWS = 500;
const [, , build, directory, what, tag] = process.argv;
/** @type {typeof import('../../dist/src/embedded/index.js')} */
const { open, RowMutation } = await import(pathToFileURL(join(build, 'dist/src/embedded/index.js')).href);

/** @param {number} i */
const keyOf = (i) => `${tag}-${String(i).padStart(6, '0')}`;
/** @param {number} i */
const valueOf = (i) => `${tag} value ${i} `.repeat(8);

/** @param {import('../../dist/src/embedded/index.js').Database} database */
async function write(database) {
  const table = (await database.hasTable('t'))
    ? database.table('t')
    : await database.createTable('t', { families: { f: { maxVersions: 3 }, g: {} } });
  for (let batch = 0; batch < BATCHES; batch++) {
    const rows = Array.from({ length: BATCH_ROWS }, (_, i) => {
      const n = batch * BATCH_ROWS + i;
      const mutation = new RowMutation(keyOf(n));
      mutation.set('f:q', valueOf(n));
      mutation.set('g:x', 'y');
      return mutation;
    });
    await table.applyAll(rows);
    if (batch === BATCHES / 4) await database.flush?.();
    if (batch === BATCHES / 2) await database.compact?.('t');
  }
  await table.increment(`${tag}-counter`, 'g:n', 5n);
  await table.deleteRow(keyOf(0));
}

/** @param {import('../../dist/src/embedded/index.js').Database} database */
async function look(database) {
  const table = database.table('t');
  let next = 1;
  for await (const row of table.scan({ prefix: `${tag}-0` })) {
    const text = row.get('f:q')?.text;
    if (row.name !== keyOf(next) || text !== valueOf(next))
      throw new Error(`${row.name} holds ${text} where ${keyOf(next)} was to come`);
    next++;
  }
  if (next !== BATCHES * BATCH_ROWS) throw new Error(`${next - 1} rows of ${tag}, not ${BATCHES * BATCH_ROWS - 1}`);
  if ((await table.increment(`${tag}-counter`, 'g:n', 0n)) !== 5n) throw new Error('the counter is wrong');
}

const database = await open(directory);
if (what === 'read') await look(database);
else await write(database);
if (what === 'kill') process.kill(process.pid, 'SIGKILL');
await database.close();
