/**
 * A sweep of many files, of which a tenth is garbage, on a store that takes 10 ms for each call.
 * EDUBBA_SWEEP_FILES=1000000 is the long form; it prints the most memory that the process took.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inSimulatedTime } from '../../test/simulated-time.ts';
import {
  ByteBudget,
  type Env,
  type FileInfo,
  type FileSystem,
  ManualClock,
  MemoryFileSystem,
  Metrics,
  requestContext,
  sleep,
} from '../env/index.ts';
import type { MetadataClient } from '../locator/index.ts';
import type { MetadataRow } from '../metadata/index.ts';
import type { Servers } from './servers.ts';
import { sweep } from './sweep.ts';

const FILES = Number(process.env['EDUBBA_SWEEP_FILES'] ?? 50_000);
const GARBAGE = FILES / 10;
const CALL_MS = 10;
/** As a store lists them. */
const PAGE = 1000;
const FILES_OF_TABLET = 20;
const ROWS_READ_TOGETHER = 100;
/** A million files are swept in ten minutes. */
const MAX_MS = (600_000 * FILES) / 1_000_000;

/** The first ones are garbage. */
const pathOf = (i: number): string => `sstables/0e0030f0ca8a3a4dff61c91e87bcf5d5-${i}`;
const keyOf = (tablet: number): string => String(tablet).padStart(9, '0');

/** The row of METADATA of a tablet that has the files after the garbage. */
function rowOf(tablet: number): MetadataRow {
  const first = GARBAGE + tablet * FILES_OF_TABLET;
  const end = Math.min(first + FILES_OF_TABLET, FILES);
  const files = Array.from({ length: end - first }, (_, i) => pathOf(first + i));
  const range = { start: tablet === 0 ? '' : keyOf(tablet), end: end === FILES ? undefined : keyOf(tablet + 1) };
  return { tableId: '00000010', range, files: { default: files }, logs: [] } as unknown as MetadataRow;
}

describe('a sweep of many files', () => {
  test('deletes the garbage alone, many files at a time', async () => {
    const clock = new ManualClock();
    const called = (): Promise<void> => sleep(clock, CALL_MS);
    const deleted = new Set<string>();
    const fileSystem: FileSystem = Object.assign(new MemoryFileSystem(), {
      list: async (prefix: string): Promise<FileInfo[]> => {
        if (!pathOf(0).startsWith(prefix)) return [];
        const all: FileInfo[] = [];
        for (let i = 0; i < FILES; i++) {
          if (i % PAGE === 0) await called();
          all.push({ path: pathOf(i), sizeBytes: (i * 7919) % 1e8 });
        }
        return all;
      },
      delete: async (path: string) => {
        await called();
        deleted.add(path);
      },
    });
    const metadata = {
      readRoot: async () => ({ files: {}, logs: [] }),
      scan: async function* ({ start }: { start: string }) {
        // METADATA's own rows
        if (start === '') return;
        const tablets = Math.ceil((FILES - GARBAGE) / FILES_OF_TABLET);
        for (let at = 0; at < tablets; at += ROWS_READ_TOGETHER) {
          await called();
          yield Array.from({ length: Math.min(ROWS_READ_TOGETHER, tablets - at) }, (_, i) => rowOf(at + i));
        }
      },
    } as unknown as MetadataClient;
    const servers = {
      all: () => [],
      anySilent: false,
      callAll: async () => new Map(),
      findDead: async () => new Set(),
    } as unknown as Servers;
    const env = { fileSystem, metrics: new Metrics() } as unknown as Env;
    const context = requestContext({ budget: new ByteBudget(1 << 20) });
    const sinceMs = clock.monotonicMs();
    const { files } = await inSimulatedTime(
      clock,
      sweep(env, metadata, servers, () => false, context),
    );
    const tookMs = clock.monotonicMs() - sinceMs;
    assert.equal(files, GARBAGE);
    assert.deepEqual(
      [deleted.size, [...deleted].every((path) => Number(path.split('-')[1]) < GARBAGE)],
      [GARBAGE, true],
    );
    assert.ok(tookMs <= MAX_MS, `${tookMs} ms`);
    const mib = Math.round(process.resourceUsage().maxRSS / 1024);
    console.log(`a sweep of ${FILES} files, ${GARBAGE} of them garbage: ${tookMs / 1000} s, at most ${mib} MiB`);
  });
});
