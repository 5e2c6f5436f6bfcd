/**
 * The slots of logs in a directory that many machines share: a file each, in the directory of its row, named by its
 * number.
 *
 * Invariant: the promises of slot-store.ts. A page of a list is what was there at one instant: it is read twice, until
 * both times agree.
 */
import { assert, unavailable } from '../../base/index.ts';
import { checkFilePath, type Clock, type SlotPage, type SlotStore, sleep } from '../../env/index.ts';
import { errnoOf, isLackOfResources, isMissing, isOutOfSpace, systemError } from '../posix/posix-errors.ts';
import type { Syscalls } from '../posix/posix-syscalls.ts';
import { OPEN_NEW, type SharedNames } from './shared-names.ts';
import { SlotRoom } from './slot-room.ts';

const SLOT_NAME = /^\d{16}$/;
const DIGITS = 16;
/** Reads of a directory that changes all the while. */
const MAX_LISTINGS = 100;
const MAX_CONCURRENT_DELETIONS = 16;
/** Another creation, which will fail, may hold what was returned for a moment. */
const ATTEMPTS_IN_RETURNED_ROOM = 5;
const RETURNED_ROOM_DELAY_MS = 5;

export interface SharedSlotsOptions {
  readonly names: SharedNames;
  readonly syscalls: Syscalls;
  readonly clock: Clock;
  /** Slots or rows in a page of a list. */
  readonly pageSize: number;
  readonly maxReservedSlots: number;
}

export class SharedSlots implements SlotStore {
  readonly #names: SharedNames;
  readonly #syscalls: Syscalls;
  readonly #pageSize: number;
  readonly #maxReservedSlots: number;
  readonly #clock: Clock;
  /** The last creation in reserved room. */
  #creations: Promise<void> = Promise.resolve();
  /** Room that this process has reserved, by row. */
  readonly #rooms = new Map<string, SlotRoom>();

  constructor({ names, syscalls, clock, pageSize, maxReservedSlots }: SharedSlotsOptions) {
    this.#clock = clock;
    this.#names = names;
    this.#syscalls = syscalls;
    this.#pageSize = pageSize;
    this.#maxReservedSlots = maxReservedSlots;
  }

  async create(
    row: string,
    slot: number,
    parts: readonly Uint8Array[],
    { reserved = false }: { readonly reserved?: boolean } = {},
  ): Promise<boolean> {
    const path = this.#slotPath(row, slot);
    const room = reserved ? this.#rooms.get(row) : undefined;
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    try {
      await this.#publish(path, parts).catch(async (error: unknown) => {
        const takesReserved = room !== undefined && isLackOfResources(error);
        if (!takesReserved || (await this.#names.isDurable(path))) throw error;
        await this.#inReserved(room, bytes, error, () => this.#publish(path, parts));
      });
      room?.take(bytes);
      return true;
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false;
      // no room for another attempt to create what an earlier one has created
      if (isLackOfResources(error) && (await this.#names.isDurable(path))) return false;
      // never refused for lack of room: a later attempt may find some
      if (room !== undefined && isLackOfResources(error))
        throw unavailable('others have taken what was reserved', error);
      throw systemError(error, `creating ${path}`);
    }
  }

  async #publish(path: string, parts: readonly Uint8Array[]): Promise<void> {
    await this.#names.publish(await this.#write(parts), path);
  }

  /** Creates the slot in reserved room, after `refusal`. One at a time: others would take what is returned for it. */
  #inReserved(room: SlotRoom, bytes: number, refusal: unknown, publish: () => Promise<void>): Promise<void> {
    const created = this.#creations.then(async () => {
      let refused = refusal;
      for (let attempt = 0; isOutOfSpace(refused); attempt++) {
        if (attempt % ATTEMPTS_IN_RETURNED_ROOM === 0 && !(await room.giveBack(bytes))) break;
        try {
          return await publish();
        } catch (error) {
          if (!isLackOfResources(error)) throw error;
          refused = error;
        }
        await sleep(this.#clock, RETURNED_ROOM_DELAY_MS);
      }
      throw refused;
    });
    this.#creations = created.catch(() => undefined);
    return created;
  }

  async read(row: string, slot: number, offset: number, length: number): Promise<Buffer | undefined> {
    const path = this.#slotPath(row, slot);
    try {
      const fd = await this.#syscalls.open(path, 0);
      try {
        const rest = Math.max(0, (await this.#syscalls.fileSize(fd)) - offset);
        const bytes = Buffer.allocUnsafe(Math.min(length, rest));
        for (let got = 0; got < bytes.length; ) {
          const n = await this.#syscalls.read(fd, bytes, got, bytes.length - got, offset + got);
          if (n === 0) throw unavailable(`${path}: the file ends before its size`);
          got += n;
        }
        return bytes;
      } finally {
        await this.#syscalls.close(fd);
      }
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw systemError(error, `reading ${path}`);
    }
  }

  async listSlots(row: string, from: number): Promise<SlotPage> {
    checkFilePath(row);
    let page = await this.#scan(row, from);
    for (let listings = 1; listings < MAX_LISTINGS; listings++) {
      const again = await this.#scan(row, from);
      const end = page.at(-1) ?? (again.length === 0 ? 0 : -1);
      // what was added above it meanwhile does not matter
      const same = again.filter((slot) => slot <= end);
      if (end >= 0 && same.length === page.length && same.every((slot, i) => slot === page[i])) {
        const slots = page.slice(0, this.#pageSize);
        return { slots, isLast: slots.length === again.length };
      }
      page = again;
    }
    throw unavailable(`${row}: the row of slots changed all the while it was listed`);
  }

  async listLogs(prefix: string, after: string): Promise<string[]> {
    const rows: string[] = [];
    try {
      for await (const { directory, files } of this.#names.walk(this.#names.rowPath(''), prefix))
        if (directory.startsWith(prefix) && directory > after && files.some(isSlot)) rows.push(directory);
    } catch (error) {
      throw systemError(error, `listing logs ${prefix}`);
    }
    return rows.sort().slice(0, this.#pageSize);
  }

  async delete(row: string, slots: readonly number[]): Promise<void> {
    const paths = slots.map((slot) => this.#slotPath(row, slot));
    try {
      for (let at = 0; at < paths.length; at += MAX_CONCURRENT_DELETIONS)
        await Promise.all(paths.slice(at, at + MAX_CONCURRENT_DELETIONS).map((path) => this.#unlink(path)));
      if (slots.includes(0)) await this.unreserve(row);
      // durable: a slot that comes back after a loss of power must not outlive the marker that is deleted after it
      await this.#names.afterDeletion(this.#names.rowPath(row), true);
    } catch (error) {
      throw systemError(error, `deleting slots of ${row}`);
    }
  }

  async reserve(row: string, bytes: number): Promise<void> {
    const head = this.#slotPath(row, 0);
    const room = this.#rooms.get(row) ?? this.#room(row);
    this.#rooms.set(row, room);
    await room.reserve(bytes);
    // a log that was deleted meanwhile keeps nothing
    if ((await this.#syscalls.status(head).catch(() => undefined)) === undefined) await this.unreserve(row);
  }

  async unreserve(row: string): Promise<void> {
    const room = this.#rooms.get(row) ?? this.#room(row);
    this.#rooms.delete(row);
    await room.remove();
  }

  #room(row: string): SlotRoom {
    checkFilePath(row);
    const path = this.#names.roomPath(row);
    return new SlotRoom({ path, syscalls: this.#syscalls, maxSlots: this.#maxReservedSlots });
  }

  #slotPath(row: string, slot: number): string {
    checkFilePath(row);
    assert(Number.isSafeInteger(slot) && slot >= 0, 'a slot is a safe integer');
    return `${this.#names.rowPath(row)}/${String(slot).padStart(DIGITS, '0')}`;
  }

  /** A durable file with a temporary name; without effect where that fails. */
  async #write(parts: readonly Uint8Array[]): Promise<string> {
    const temporary = this.#names.temporaryPath();
    const fd = await this.#syscalls.open(temporary, OPEN_NEW);
    try {
      try {
        await this.#syscalls.write(fd, parts, 0);
        await this.#syscalls.sync(fd);
      } finally {
        await this.#syscalls.close(fd);
      }
      return temporary;
    } catch (error) {
      await this.#syscalls.unlink(temporary).catch(() => undefined);
      throw error;
    }
  }

  /** Slots from `from` on, ascending. */
  async #scan(row: string, from: number): Promise<number[]> {
    try {
      const entries = await this.#syscalls.readdir(this.#names.rowPath(row));
      const slots = entries.map(({ name }) => (SLOT_NAME.test(name) ? Number(name) : -1));
      return slots.filter((slot) => slot >= from).sort((a, b) => a - b);
    } catch (error) {
      if (isMissing(error)) return [];
      throw systemError(error, `listing slots of ${row}`);
    }
  }

  async #unlink(path: string): Promise<void> {
    await this.#syscalls.unlink(path).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  }
}

/** True for the path of a slot, below that of its row. */
function isSlot(path: string): boolean {
  return SLOT_NAME.test(path.slice(path.length - DIGITS));
}
