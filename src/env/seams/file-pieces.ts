/** Files as wholes, read and written in pieces, which bounds the memory. */
import type { FileSystem } from './file-system.ts';

/** All bytes of the file, in order. NOT_FOUND where there is none. */
export async function* readPieces(
  fileSystem: Pick<FileSystem, 'size' | 'read'>,
  path: string,
  pieceBytes: number,
): AsyncGenerator<Buffer> {
  const sizeBytes = await fileSystem.size(path);
  for (let offset = 0; offset < sizeBytes; offset += pieceBytes)
    yield await fileSystem.read(path, offset, Math.min(pieceBytes, sizeBytes - offset));
}

/** Makes the file of these bytes; none where it fails. ALREADY_EXISTS where there is one of that path. */
export async function writePieces(
  fileSystem: Pick<FileSystem, 'create'>,
  path: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const writer = await fileSystem.create(path);
  try {
    for await (const piece of pieces) await writer.append(piece);
  } catch (thrown) {
    // the first failure says more
    await writer.abort().catch(() => {});
    throw thrown;
  }
  await writer.close();
}
