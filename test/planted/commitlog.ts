import { AppendEncoder } from '../../src/commitlog/append-encoder.ts';
import { type NewRecord, Origin, ServerLog } from '../../src/commitlog/index.ts';
import type { FileSystem, LogWriter } from '../../src/env/index.ts';
import type { Mutation } from '../../src/model/index.ts';
import type { Fault } from './fault.ts';

const VALUE = Buffer.from('value');
const SET: Mutation = { kind: 'setCell', family: 'f', qualifier: 'q', timestamp: 1, value: VALUE };

function recordOf(mutation: Mutation = SET): NewRecord {
  return {
    tableId: '00000010',
    epoch: 3,
    commitMicros: 1,
    origin: Origin.user,
    body: { kind: 'rows', rows: [{ row: 'row', mutations: [mutation] }] },
  };
}

/** A log whose appends come to lie at these positions, one after another. */
async function logAt(positions: readonly number[], firstSequence = 1): Promise<ServerLog> {
  const left = [...positions];
  const writer: LogWriter = {
    append: async () => left.shift() ?? 0,
    reserve: async () => {},
    trimBefore: async () => {},
    sizeBytes: () => 0,
    close: async () => {},
  };
  const fileSystem: Pick<FileSystem, 'openLog'> = { openLog: async () => writer };
  return ServerLog.open({ fileSystem: fileSystem as FileSystem, path: 'log', firstSequence });
}

export const COMMITLOG_FAULTS: readonly Fault[] = [
  {
    fault: 'a record is of a negative epoch',
    message: /varint/,
    run: (planted) => new AppendEncoder().add({ ...recordOf(), epoch: planted ? -1 : 0 }),
  },
  {
    fault: 'a cell is logged without its timestamp',
    message: /final timestamp/,
    run: (planted) => {
      const { timestamp: _, ...rest } = SET;
      new AppendEncoder().add(recordOf(planted ? rest : SET));
    },
  },
  {
    fault: 'the header of an append counts other records than it has',
    message: /header/,
    run: (planted) => {
      const encoder = new AppendEncoder();
      encoder.add(recordOf());
      encoder.finish({ previous: 0, count: planted ? 2 : 1, firstSequence: 1, lowWater: 0 });
    },
  },
  {
    fault: 'an append has no record',
    message: /header|records/,
    run: (planted) => {
      const encoder = new AppendEncoder();
      if (!planted) encoder.add(recordOf());
      encoder.finish({ previous: 0, count: encoder.count, firstSequence: 1, lowWater: 0 });
    },
  },
  {
    fault: 'the position of an append lies below that of the one before',
    message: /positions ascend/,
    run: async (planted) => {
      const log = await logAt([64, planted ? 32 : 96]);
      await log.append(recordOf()).append.durable;
      await log.append(recordOf()).append.durable;
    },
  },
  {
    fault: 'the first sequence number of a log is negative',
    message: /sequence number|varint/,
    run: async (planted) => {
      const log = await logAt([0], planted ? -1 : 1);
      await log.append(recordOf()).append.durable;
    },
  },
];
