/**
 * Proves at start that a store which many machines share keeps the promises of file-system.ts and slot-store.ts, as far
 * as one machine can see: exclusive creation under a race, whole objects, lists that show what was just created,
 * ranges, deletion. A store that breaks one is refused with FAILED_PRECONDITION and words that name the promise.
 *
 * Invariant: it leaves nothing behind, unless the process ends in the midst of it.
 */
import { BigtableError, Code, toBigtableError } from '../../base/index.ts';
import { isOutcomeUnknown } from '../calls/settled-changes.ts';
import { type Clock, type Random, sleep } from '../seams/clock.ts';
import type { StoredFiles } from '../seams/file-system.ts';
import type { SlotStore } from '../seams/slot-store.ts';

export interface StoreToProve {
  readonly files: StoredFiles;
  readonly slots: SlotStore;
  /** The store, as its users name it. */
  readonly where: string;
  readonly clock: Clock;
  readonly random: Random;
}

type Keeps = (isKept: boolean, promise: string) => void;

/** A store that treats conditions as a race does not break one each time. */
const RACES = 4;
const RACERS = 8;
const DELAYS_MS = [100, 300, 1000, 3000];
const FOLDER = 'self-test';

export async function proveStore({ files, slots, where, clock, random }: StoreToProve): Promise<void> {
  await proveFiles({ files, where, clock, random });
  await proved({ where, clock, random }, (name, keeps) => proveSlots(slots, `${FOLDER}/${name}/a`, keeps));
}

/** The part about write-once files. */
export function proveFiles({ files, ...about }: Omit<StoreToProve, 'slots'>): Promise<void> {
  return proved(about, (name, keeps) => proveOneFile(files, `${FOLDER}/${name}`, keeps));
}

/** Proves it anew, under another name, where the store does not answer. */
async function proved(
  { where, clock, random }: Pick<StoreToProve, 'where' | 'clock' | 'random'>,
  prove: (name: string, keeps: Keeps) => Promise<void>,
): Promise<void> {
  const keeps: Keeps = (isKept, promise) => {
    if (isKept) return;
    const message = `${where} cannot hold a database: it breaks the promise that ${promise}`;
    throw new BigtableError(Code.FAILED_PRECONDITION, message);
  };
  for (const delayMs of [...DELAYS_MS, undefined]) {
    try {
      return await prove(random.uniqueName(), keeps);
    } catch (thrown) {
      const error = toBigtableError(thrown);
      if (!isOutcomeUnknown(error) || delayMs === undefined) throw error;
      await sleep(clock, delayMs);
    }
  }
}

async function proveOneFile(files: StoredFiles, path: string, keeps: Keeps): Promise<void> {
  try {
    for (let race = 0; race < RACES; race++) {
      const racers = await Promise.all(contents(race).map((bytes) => written(files, path, bytes)));
      const outcomes = await Promise.all(racers.map((close) => isRefused(close(), Code.ALREADY_EXISTS)));
      const winner = onlyWinner(outcomes, 'file', keeps);
      await keepsFile(files, path, contents(race)[winner]!, keeps);
      const rewritten = written(files, path, contents(race)[0]!).then((close) => close());
      const late = await isRefused(rewritten, Code.ALREADY_EXISTS);
      keeps(late, 'a file that exists is never replaced');
      await keepsFile(files, path, contents(race)[winner]!, keeps);
      await files.delete(path);
      keeps(await isRefused(files.size(path), Code.NOT_FOUND), 'a deleted file is gone');
      keeps((await files.list(path)).length === 0, 'a list does not show a deleted file');
    }
  } finally {
    await files.delete(path).catch(() => undefined);
  }
}

/** Resolves when the file is written; the result closes it. */
async function written(files: StoredFiles, path: string, bytes: Buffer): Promise<() => Promise<void>> {
  const writer = await files.create(path);
  await writer.append(bytes);
  return () => writer.close();
}

async function keepsFile(files: StoredFiles, path: string, bytes: Buffer, keeps: Keeps): Promise<void> {
  const [listed] = await files.list(path);
  keeps(listed?.path === path, 'a list shows a file as soon as it was created');
  keeps(listed?.sizeBytes === bytes.length, 'a list tells the size of a file');
  keeps((await files.size(path)) === bytes.length, 'a file has the size that was written');
  keeps((await files.read(path, 0, bytes.length)).equals(bytes), 'a file is what the one wrote who created it');
  keeps((await files.read(path, 3, 5)).equals(bytes.subarray(3, 8)), 'a range of a file reads as it was written');
  const isAfterEnd = await isRefused(files.read(path, bytes.length - 1, 2), Code.OUT_OF_RANGE);
  keeps(isAfterEnd, 'a range after the end of a file is refused');
}

async function proveSlots(slots: SlotStore, row: string, keeps: Keeps): Promise<void> {
  const numbers = Array.from({ length: RACES }, (_, race) => race);
  try {
    for (const slot of numbers) {
      const created = await Promise.all(contents(slot).map((bytes) => slots.create(row, slot, [bytes])));
      const bytes =
        contents(slot)[
          onlyWinner(
            created.map((isCreated) => !isCreated),
            'slot',
            keeps,
          )
        ]!;
      keeps(!(await slots.create(row, slot, [contents(slot)[0]!])), 'a slot that exists is never replaced');
      const whole = await slots.read(row, slot, 0, 2 * bytes.length);
      keeps(whole?.equals(bytes) === true, 'a slot is what the one wrote who created it');
      const range = await slots.read(row, slot, 3, 5);
      keeps(range?.equals(bytes.subarray(3, 8)) === true, 'a range of a slot reads as it was written');
      const listed = (await slots.listSlots(row, slot)).slots;
      keeps(listed.length === 1 && listed[0] === slot, 'a list shows a slot as soon as it was created');
    }
    keeps(String(await allSlots(slots, row)) === String(numbers), 'a list shows all slots in order');
    keeps((await slots.listLogs(row, '')).includes(row), 'a list shows the logs that have slots');
    keeps((await slots.read(row, RACES, 0, 1)) === undefined, 'a slot that was not created is not there');
    await slots.delete(row, numbers);
    keeps((await slots.read(row, 0, 0, 1)) === undefined, 'a deleted slot is gone');
    keeps((await slots.listSlots(row, 0)).slots.length === 0, 'a list does not show deleted slots');
    keeps(await slots.create(row, 0, [contents(0)[0]!]), 'a slot that was deleted can be created again');
  } finally {
    await slots.delete(row, numbers).catch(() => undefined);
  }
}

async function allSlots(slots: SlotStore, row: string): Promise<number[]> {
  const all: number[] = [];
  for (let isLast = false; !isLast; ) {
    const page = await slots.listSlots(row, (all.at(-1) ?? -1) + 1);
    all.push(...page.slots);
    isLast = page.isLast || page.slots.length === 0;
  }
  return all;
}

/** What each of those writes who race for an object: of several lengths. */
function contents(race: number): Buffer[] {
  return Array.from({ length: RACERS }, (_, racer) => Buffer.from(`race ${race} ${'of writers '.repeat(racer + 1)}`));
}

/** The one racer that was not refused. */
function onlyWinner(refusals: readonly boolean[], what: string, keeps: Keeps): number {
  const winners = refusals.filter((isRefusal) => !isRefusal).length;
  keeps(winners === 1, `of ${RACERS} that create one ${what} together one succeeds (${winners} did)`);
  return refusals.indexOf(false);
}

/** True where the call fails with that code; other failures are thrown. */
async function isRefused(call: Promise<unknown>, code: Code): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (thrown) {
    const error = toBigtableError(thrown);
    if (error.code !== code) throw error;
    return true;
  }
}
