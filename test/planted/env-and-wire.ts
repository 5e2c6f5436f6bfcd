import { PassThrough } from 'node:stream';
import { BudgetParts, Part } from '../../src/env/budget/budget-parts.ts';
import { listFiles, ManualClock, MemoryFileSystem, MemoryLockService } from '../../src/env/index.ts';
import { DynamicTable } from '../../src/wire/hpack/dynamic-table.ts';
import { ANSWER_HEADERS, withHeaders } from '../../src/wire/grpc/answer-blocks.ts';
import { ConnectionInput } from '../../src/wire/http2/connection-input.ts';
import { ReceiveWindow } from '../../src/wire/http2/flow-window.ts';
import { ReadTurns } from '../../src/wire/http2/read-turns.ts';
import type { Fault } from './fault.ts';

const PAYLOAD = [Buffer.from('payload')];

export const ENV_FAULTS: readonly Fault[] = [
  {
    fault: 'a budget gets more back than was taken of it',
    message: /more than was taken/,
    run: (planted) => {
      const parts = new BudgetParts(1000);
      parts.take(Part.small, 10);
      parts.release(Part.small, planted ? 11 : 10);
    },
  },
  {
    fault: 'two appends to one log are in flight',
    message: /two concurrent appends/,
    run: async (planted) => {
      const log = await new MemoryFileSystem().openLog('log');
      const first = log.append(PAYLOAD);
      if (!planted) await first;
      await Promise.all([first, log.append(PAYLOAD)]);
    },
  },
  {
    fault: 'a file grows after its end',
    message: /after the end/,
    run: async (planted) => {
      const file = await new MemoryFileSystem().create('file');
      if (planted) await file.close();
      await file.append(Buffer.from('bytes'));
    },
  },
  {
    fault: 'a clock goes back',
    message: /does not go/,
    run: (planted) => new ManualClock().advance(planted ? -1 : 1),
  },
  {
    fault: 'a page of a list begins anew',
    message: /pages of a list ascend/,
    run: async (planted) => {
      const service = new MemoryLockService();
      await service.write('a', PAYLOAD[0]!);
      const list = service.list.bind(service);
      let pages = 0;
      service.list = (prefix, after) => (planted && ++pages < 3 ? list(prefix) : list(prefix, after));
      await listFiles(service, '');
    },
  },
];

export const WIRE_FAULTS: readonly Fault[] = [
  {
    fault: 'a table of headers counts fewer bytes than it holds',
    message: /the dynamic table counts its size/,
    run: (planted) => {
      const table = new DynamicTable(4096);
      table.add('name', 'value');
      if (planted) table.sizeBytes = 1;
      table.resize(0);
    },
  },
  {
    fault: 'a connection is resumed more often than paused',
    message: /more often than paused/,
    run: (planted) => {
      const input = new ConnectionInput({
        socket: new PassThrough(),
        turns: new ReadTurns(new ManualClock()),
        onHeard: () => {},
        onFailed: () => {},
        onFrame: () => {},
      });
      input.pause();
      input.resume();
      if (planted) input.resume();
    },
  },
  {
    fault: 'a window of flow control is too large',
    message: /above its limit/,
    run: (planted) => new ReceiveWindow(planted ? 2 ** 31 : 2 ** 31 - 1, 1).grant(1),
  },
  {
    fault: 'the headers of an answer do not fit a frame',
    message: /short enough to be sent/,
    run: (planted) => withHeaders(ANSWER_HEADERS, ['a', 'x'.repeat(9000), 'b', planted ? 'y'.repeat(9000) : '']),
  },
];
