/** Bugs of commit logs, as slots of two rows (model B). */
import type { PlantedBug } from './bug.ts';

const ROW = 'env/slots/slot-row.ts';
const WRITER = 'env/slots/slot-log-writer.ts';

export const LOG_BUGS: readonly PlantedBug[] = [
  {
    name: 'A20',
    title: 'trimming deletes one slot too many',
    changes: [
      {
        file: ROW,
        text: '({ sequence }, i) => sequence >= lowWater',
        wrong: '({ sequence }, i) => sequence > lowWater',
      },
    ],
  },
  {
    name: 'B01',
    title: 'a slot that is slow is followed by the next one before it is known',
    changes: [
      {
        file: WRITER,
        text: 'if (isSlow && other.isFree) writings.push(other.write(append).then(() => other));',
        wrong: 'if (isSlow && other !== active) writings.push(active.writeAhead(append).then(() => active));',
      },
      {
        file: ROW,
        text: 'async #create({ sequence, lowWater, payload, payloadChecksum, reserved }: AppendToWrite): Promise<void> {',
        wrong: `writeAhead(append: AppendToWrite): Promise<void> {
    return this.#create(append, 1);
  }
  async #create({ sequence, lowWater, payload, payloadChecksum, reserved }: AppendToWrite, ahead = 0): Promise<void> {`,
      },
      { file: ROW, text: 'const slot = this.#nextSlot;', wrong: 'const slot = this.#nextSlot + ahead;' },
      {
        file: ROW,
        text: 'if (!isCreated || sinceMs >= this.#doubtMs)',
        wrong: 'if (ahead === 0 && (!isCreated || sinceMs >= this.#doubtMs))',
      },
      {
        file: ROW,
        text: 'this.#nextSlot = slot + 1;',
        wrong: 'this.#nextSlot = Math.max(this.#nextSlot, slot + 1);',
      },
    ],
  },
  {
    name: 'B02',
    title: 'a slot is skipped',
    changes: [{ file: ROW, text: 'this.#nextSlot = slot + 1;', wrong: 'this.#nextSlot = slot + 2;' }],
  },
  {
    name: 'B03',
    title: 'an append that is not answered is taken for one that was refused',
    changes: [
      {
        file: 'env/slots/slot-calls.ts',
        text: 'import { assert, type BigtableError,',
        wrong: 'import { assert, BigtableError,',
      },
      {
        file: 'env/slots/slot-calls.ts',
        text: `            error,
          );
        throw error;`,
        wrong: `            error,
          );
        throw new BigtableError(Code.RESOURCE_EXHAUSTED, error.message);`,
      },
    ],
  },
  {
    name: 'B04',
    title: 'a slot that exists is taken for the own append',
    meeting: 'pause under slow appends',
    changes: [
      {
        file: ROW,
        text: 'if (!isCreated) await this.#checkOwn(slot, header);',
        wrong: '',
      },
    ],
  },
  {
    name: 'B05',
    title: 'a slot that exists is taken for a fence',
    changes: [{ file: ROW, text: 'if (found?.equals(header)) return;', wrong: '' }],
  },
  {
    name: 'B06',
    title: "one of a log's two rows is fenced",
    changes: [
      {
        file: 'env/slots/slot-logs.ts',
        text: "for (const row of rowsOf(path)) await sealRow(this.#calls, row, 'fence', this.#random);",
        wrong: "for (const row of rowsOf(path).slice(0, 1)) await sealRow(this.#calls, row, 'fence', this.#random);",
      },
    ],
  },
  {
    name: 'B08',
    title: 'the number of an append is skipped, and a replay ends there',
    changes: [
      {
        file: WRITER,
        text: 'this.#nextSequence = sequence + 1;',
        wrong: 'this.#nextSequence = sequence + 2;',
      },
      {
        file: 'env/slots/slot-reader.ts',
        text: 'if (readings > 0 && next === begin && !isTrimmed)',
        wrong: 'if (readings > 0 && next === begin && !isTrimmed) return;\n    if (next === begin)',
      },
    ],
  },
];
