/**
 * Writes spread evenly over many tablets of one server, next to the same writes to one tablet, on a store that takes
 * its time for each PUT. Prints rates, once flushes have begun.
 *
 *   npm run bench -- many-tablets [--tablets=1000] [--secs=40] [--put-ms=50] [--get-ms=10]
 */
import { parseArgs } from 'node:util';
import { openDatabase } from '../src/boot/index.ts';
import { overService, RowMutation } from '../src/embedded/index.ts';
import {
  type FileSystem,
  type FileWriter,
  MemoryFileSystem,
  MemorySlotStore,
  type SlotStore,
  sleep,
  withSlotLogs,
} from '../src/env/index.ts';
import { systemClock, systemRandom } from '../src/platform/index.ts';

const { values } = parseArgs({
  options: {
    tablets: { type: 'string', default: '1000' },
    secs: { type: 'string', default: '40' },
    'put-ms': { type: 'string', default: '50' },
    'get-ms': { type: 'string', default: '10' },
  },
});
const TABLETS = Number(values.tablets);
const SECONDS = Number(values.secs);
const PUT_MS = Number(values['put-ms']);
const GET_MS = Number(values['get-ms']);

const CLIENTS = 32;
const ROWS_PER_CALL = 100;
const VALUE_BYTES = 1024;
/** As for S3. */
const SLOT_COST_BYTES = 16 * 1024;
/** Time before the measured one: memtables fill, and flushes begin. */
const WARM_SECONDS = 10;

/** A call in this much time. */
const after = async <T>(delayMs: number, call: () => Promise<T>): Promise<T> => {
  await sleep(systemClock, delayMs);
  return call();
};

function slowFiles(files: MemoryFileSystem): FileSystem {
  return {
    create: async (path): Promise<FileWriter> => {
      const writer = await files.create(path);
      return {
        append: (bytes) => writer.append(bytes),
        // it is stored by one PUT
        close: () => after(PUT_MS, () => writer.close()),
        abort: () => writer.abort(),
      };
    },
    size: (path) => after(GET_MS, () => files.size(path)),
    read: (path, offset, length) => after(GET_MS, () => files.read(path, offset, length)),
    list: (prefix) => after(GET_MS, () => files.list(prefix)),
    delete: (path) => after(GET_MS, () => files.delete(path)),
    openLog: (path) => files.openLog(path),
    fence: (path) => files.fence(path),
    readLog: (path, from) => files.readLog(path, from),
    listLogs: (prefix) => files.listLogs(prefix),
    deleteLog: (path) => files.deleteLog(path),
  };
}

function slowSlots(slots: MemorySlotStore): SlotStore {
  return {
    create: (...call) => after(PUT_MS, () => slots.create(...call)),
    read: (...call) => after(GET_MS, () => slots.read(...call)),
    listSlots: (...call) => after(GET_MS, () => slots.listSlots(...call)),
    listLogs: (...call) => after(GET_MS, () => slots.listLogs(...call)),
    delete: (...call) => after(GET_MS, () => slots.delete(...call)),
    reserve: (...call) => slots.reserve(...call),
    unreserve: (...call) => slots.unreserve(...call),
  };
}

/** Rows written a second by clients that begin their next call when the last one is answered. */
async function rate(tablets: number): Promise<number> {
  const fileSystem = withSlotLogs(slowFiles(new MemoryFileSystem()), slowSlots(new MemorySlotStore()), {
    clock: systemClock,
    random: systemRandom,
    slotCostBytes: SLOT_COST_BYTES,
  });
  const opened = await openDatabase({ fileSystem });
  const database = overService(opened.service, opened.env, () => opened.close());
  const keyOf = (tablet: number): string => String(tablet).padStart(6, '0');
  const splits = Array.from({ length: tablets - 1 }, (_, i) => keyOf(i + 1));
  const table = await database.createTable('t', { families: { f: {} }, splits });
  const value = Buffer.alloc(VALUE_BYTES, 'v');
  const begin = performance.now() + WARM_SECONDS * 1000;
  const end = begin + SECONDS * 1000;
  let next = 0;
  let rows = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      const mutations = Array.from({ length: ROWS_PER_CALL }, () => {
        const i = next++;
        return new RowMutation(`${keyOf(i % tablets)}-${Math.random()}`).set('f:q', value);
      });
      await table.applyAll(mutations);
      if (performance.now() > begin && performance.now() < end) rows += ROWS_PER_CALL;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const counters = await database.counters();
  const named = ['tabletserver.writesThatWaited', 'tabletserver.writesThatWaitedForCompactions'];
  const waits = named.map((name) => `${name} ${counters[name] ?? 0}`).join(', ');
  console.log(`${tablets} tablets: ${Math.round(rows / SECONDS)} rows a second of ${VALUE_BYTES} bytes; ${waits}`);
  await database.close();
  return rows / SECONDS;
}

// timers of the clock do not keep the process alive
const alive = setInterval(() => {}, 1000);
const one = await rate(1);
const many = await rate(TABLETS);
console.log(`${TABLETS} tablets take ${(many / one).toFixed(2)} of the writes of one`);
clearInterval(alive);
