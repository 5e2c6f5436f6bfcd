/** Files that are read and written in pieces. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BigtableError, Code } from '../../base/index.ts';
import { MemoryFileSystem } from '../memory/memory-file-system.ts';
import { readPieces, writePieces } from './file-pieces.ts';

const isError = (code: Code) => (error: unknown) => error instanceof BigtableError && error.code === code;

async function lengths(fileSystem: MemoryFileSystem, path: string, pieceBytes: number): Promise<number[]> {
  const found: number[] = [];
  for await (const piece of readPieces(fileSystem, path, pieceBytes)) found.push(piece.length);
  return found;
}

test('a file is read in pieces, the last of which is shorter', async () => {
  const fileSystem = new MemoryFileSystem();
  await writePieces(fileSystem, 'a', [Buffer.from('seven'), Buffer.from('!!')]);
  assert.deepEqual(await lengths(fileSystem, 'a', 3), [3, 3, 1]);
  assert.deepEqual(await lengths(fileSystem, 'a', 7), [7]);
  await writePieces(fileSystem, 'empty', []);
  assert.deepEqual(await lengths(fileSystem, 'empty', 3), []);
  await assert.rejects(lengths(fileSystem, 'none', 3), isError(Code.NOT_FOUND));
});

test('a file is there whole or not at all, and once', async () => {
  const fileSystem = new MemoryFileSystem();
  const failing = (async function* () {
    yield Buffer.from('a part');
    throw new BigtableError(Code.DATA_LOSS, 'the rest is lost');
  })();
  await assert.rejects(writePieces(fileSystem, 'a', failing), isError(Code.DATA_LOSS));
  assert.deepEqual(await fileSystem.list(''), []);
  await writePieces(fileSystem, 'a', [Buffer.from('whole')]);
  await assert.rejects(writePieces(fileSystem, 'a', [Buffer.from('again')]), isError(Code.ALREADY_EXISTS));
});
