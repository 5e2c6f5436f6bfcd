/**
 * A read cache against the store alone: random reads, writes and deletions, with damage of the local files, restarts
 * and a disk that fails in between. What is read is what was written; the budget holds after each step.
 */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { errno } from '../fixtures.ts';
import { nodeSyscalls, type Syscalls } from '../posix/posix-syscalls.ts';
import { assertWithinBudget, type CacheUnderTest, damage, openCache, writeFile } from './fixtures.ts';

const size = fc.nat(700);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('write', 'writeElsewhere'), length: size }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constantFrom('read', 'readNow'), file: fc.nat(), at: size, length: size }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('readTogether'), file: fc.nat(), at: size, length: size }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('scan'), file: fc.nat(), length: fc.integer({ min: 30, max: 300 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('delete', 'deleteElsewhere'), file: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('damage', 'truncate'),
      name: fc.constantFrom('chunks', 'index'),
      at: fc.nat(1500),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('restart', 'fail', 'settle') }) },
);
type Step = {
  readonly kind: string;
  readonly file?: number;
  readonly at?: number;
  readonly length?: number;
  readonly name?: string;
};

class Walk {
  readonly #subject: CacheUnderTest;
  readonly #disk: { fails: boolean };
  readonly #slots: number;
  readonly #files = new Map<string, Buffer>();
  #names = 0;

  constructor(subject: CacheUnderTest, disk: { fails: boolean }, slots: number) {
    this.#subject = subject;
    this.#disk = disk;
    this.#slots = slots;
  }

  async take({ kind, file = 0, at = 0, length = 0, name = '' }: Step): Promise<void> {
    const { cache, directory, store, clock } = this.#subject;
    const paths = [...this.#files.keys()];
    const path = paths[file % paths.length];
    if (kind === 'write' || kind === 'writeElsewhere') {
      const made = `f${this.#names++}`;
      this.#files.set(made, await writeFile(kind === 'write' ? cache.fileSystem : store, made, length));
    } else if (kind === 'restart') await this.#subject.reopen();
    else if (kind === 'fail') {
      this.#disk.fails = !this.#disk.fails;
      clock.advance(60_000);
    } else if (kind === 'settle') await cache.settled();
    else if (kind === 'damage') damage(directory, name, at);
    else if (kind === 'truncate') {
      if (fs.statSync(join(directory, name)).size > at) fs.truncateSync(join(directory, name), at);
    } else if (path !== undefined) await this.#useFile(kind, path, at, length);
    assertWithinBudget(directory, this.#slots);
  }

  async #useFile(kind: string, path: string, at: number, length: number): Promise<void> {
    const { cache, store } = this.#subject;
    const content = this.#files.get(path)!;
    const from = Math.min(at, content.length);
    const most = Math.min(length, content.length - from);
    if (kind === 'delete' || kind === 'deleteElsewhere') {
      await (kind === 'delete' ? cache.fileSystem : store).delete(path);
      this.#files.delete(path);
    } else if (kind === 'readNow') {
      const bytes = cache.fileSystem.readNow?.(path, from, most);
      if (bytes !== undefined) assert.deepEqual(bytes, content.subarray(from, from + most));
    } else if (kind === 'read') await this.#read(path, content, from, most);
    else if (kind === 'readTogether') {
      await Promise.all(
        [0, 17, 64, 150].map((less) => this.#read(path, content, Math.max(0, from - less), Math.max(0, most - less))),
      );
    } else for (let start = 0; start < content.length; start += length) await this.#read(path, content, start, length);
  }

  async #read(path: string, content: Buffer, from: number, length: number): Promise<void> {
    const most = Math.min(length, content.length - from);
    const bytes = await this.#subject.cache.fileSystem.read(path, from, most);
    assert.deepEqual(bytes, content.subarray(from, from + most));
    bytes.fill(0xee);
  }
}

test('random use, damage, restarts and faults: what is read is what was written, within the budget', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 8, max: 30 }), fc.array(step, { maxLength: 60 }), async (slots, steps) => {
      const disk = { fails: false };
      const failing = async <T>(call: Promise<T>): Promise<T> => {
        const value = await call;
        if (disk.fails) throw errno('EIO');
        return value;
      };
      const syscalls: Syscalls = {
        ...nodeSyscalls,
        read: (...args) => failing(nodeSyscalls.read(...args)),
        write: (...args) => failing(nodeSyscalls.write(...args)),
      };
      const subject = await openCache(undefined, slots, { syscalls });
      const walk = new Walk(subject, disk, slots);
      try {
        for (const each of steps) {
          if (each.kind === 'restart') disk.fails = false;
          await walk.take(each);
        }
      } finally {
        await subject.cache.close();
        fs.rmSync(subject.directory, { recursive: true });
      }
    }),
    { numRuns: 60 },
  );
});
