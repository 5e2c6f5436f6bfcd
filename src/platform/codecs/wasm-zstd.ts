/**
 * Zstandard as WebAssembly (@bokuweb/zstd-wasm), for a Node whose zlib has none. The package's own functions make a
 * context and copy the dictionary at every call, and start asynchronously; so its module is started here,
 * synchronously, and called below them: contexts, dictionaries and the buffers of ordinary blocks stay in the module's
 * memory.
 *
 * Invariant: each allocation in the module's memory is owned by one object here and freed by its close; addresses are
 * read anew after every call that may grow the memory.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert } from '../../base/index.ts';
import type { Zstd, ZstdDictionary } from '../../env/index.ts';
import { requirePackage, resolvePackage } from '../threads/packages.ts';

/** The parts of WebAssembly used here. The compiler's library declares it only together with the browser's. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => object;
};

/** The part of the package's module that is used. Addresses and sizes are bytes of its memory. */
interface ZstdModule {
  HEAPU8: Uint8Array;
  instantiateWasm?: (imports: object, receive: (instance: object) => unknown) => unknown;
  init(wasm: Uint8Array): void;
  _malloc(size: number): number;
  _free(address: number): void;
  _ZSTD_isError(result: number): number;
  _ZSTD_compressBound(size: number): number;
  _ZSTD_createCCtx(): number;
  _ZSTD_createDCtx(): number;
  _ZSTD_compress_usingDict(
    context: number,
    to: number,
    capacity: number,
    from: number,
    size: number,
    dictionary: number,
    dictionaryBytes: number,
    level: number,
  ): number;
  _ZSTD_decompress_usingDict(
    context: number,
    to: number,
    capacity: number,
    from: number,
    size: number,
    dictionary: number,
    dictionaryBytes: number,
  ): number;
}

/** Buffers up to this size are kept between calls. */
const MAX_KEPT_BYTES = 1024 * 1024;

function loadModule(): ZstdModule {
  const folder = dirname(resolvePackage('@bokuweb/zstd-wasm'));
  const { Module: module }: { Module: ZstdModule } = requirePackage(join(folder, 'zstd.js'));
  const wasm = readFileSync(join(folder, 'zstd.wasm'));
  // one module a thread: the package keeps it, so a second load finds it started
  if (module.HEAPU8 === undefined) {
    module.instantiateWasm = (imports, receive) =>
      receive(new WebAssembly.Instance(new WebAssembly.Module(wasm), imports));
    module.init(wasm);
  }
  return module;
}

/** A piece of the module's memory, grown when more is needed. */
class Scratch {
  readonly #module: ZstdModule;
  #address = 0;
  #capacity = 0;

  constructor(module: ZstdModule) {
    this.#module = module;
  }

  /** Address of at least `size` bytes, whose content is lost. */
  take(size: number): number {
    if (size > this.#capacity) {
      this.free();
      this.#address = allocate(this.#module, size);
      this.#capacity = size;
    }
    return this.#address;
  }

  /** Frees the memory of an unusually large block. */
  trim(): void {
    if (this.#capacity > MAX_KEPT_BYTES) this.free();
  }

  free(): void {
    if (this.#address !== 0) this.#module._free(this.#address);
    this.#address = 0;
    this.#capacity = 0;
  }
}

function allocate(module: ZstdModule, size: number): number {
  const address = module._malloc(Math.max(size, 1));
  if (address === 0) throw new RangeError(`zstd: no memory for ${size} bytes`);
  return address;
}

class WasmDictionary implements ZstdDictionary {
  readonly bytes: Uint8Array;
  readonly #module: ZstdModule;
  #address: number;

  constructor(module: ZstdModule, bytes: Uint8Array) {
    this.bytes = bytes;
    this.#module = module;
    this.#address = allocate(module, bytes.length);
    module.HEAPU8.set(bytes, this.#address);
  }

  get address(): number {
    assert(this.#address !== 0, 'a dictionary in use is open');
    return this.#address;
  }

  close(): void {
    if (this.#address !== 0) this.#module._free(this.#address);
    this.#address = 0;
  }
}

class WasmZstd implements Zstd {
  readonly #module = loadModule();
  readonly #compression = this.#module._ZSTD_createCCtx();
  readonly #decompression = this.#module._ZSTD_createDCtx();
  readonly #input = new Scratch(this.#module);
  readonly #output = new Scratch(this.#module);

  dictionary(bytes: Uint8Array): ZstdDictionary {
    return new WasmDictionary(this.#module, bytes);
  }

  compress(bytes: Uint8Array, level: number, dictionary?: ZstdDictionary): Buffer {
    const capacity = this.#module._ZSTD_compressBound(bytes.length);
    return this.#call(bytes, capacity, (from, to) => {
      const [address, size] = placeOf(dictionary);
      return this.#module._ZSTD_compress_usingDict(
        this.#compression,
        to,
        capacity,
        from,
        bytes.length,
        address,
        size,
        level,
      );
    });
  }

  decompress(bytes: Uint8Array, sizeBytes: number, dictionary?: ZstdDictionary): Buffer {
    const raw = this.#call(bytes, sizeBytes, (from, to) => {
      const [address, size] = placeOf(dictionary);
      return this.#module._ZSTD_decompress_usingDict(
        this.#decompression,
        to,
        sizeBytes,
        from,
        bytes.length,
        address,
        size,
      );
    });
    if (raw.length !== sizeBytes) throw new RangeError(`invalid zstd frame: ${raw.length} bytes of ${sizeBytes}`);
    return raw;
  }

  /** Copies `bytes` in, runs `work`, and copies its result, of at most `capacity` bytes, out. */
  #call(bytes: Uint8Array, capacity: number, work: (from: number, to: number) => number): Buffer {
    const module = this.#module;
    try {
      const from = this.#input.take(bytes.length);
      const to = this.#output.take(capacity);
      module.HEAPU8.set(bytes, from);
      const result = work(from, to);
      if (module._ZSTD_isError(result) !== 0)
        throw new RangeError(`zstd refuses ${bytes.length} bytes with error ${-result}`);
      return Buffer.from(module.HEAPU8.subarray(to, to + result));
    } finally {
      this.#input.trim();
      this.#output.trim();
    }
  }
}

function placeOf(dictionary: ZstdDictionary | undefined): readonly [address: number, size: number] {
  if (dictionary === undefined) return [0, 0];
  assert(dictionary instanceof WasmDictionary, 'a dictionary is used by the codec that made it');
  return [dictionary.address, dictionary.bytes.length];
}

let ofThread: WasmZstd | undefined;

/**
 * The thread's instance: its contexts live as long as the thread. Throws where the package or WebAssembly is missing.
 */
export function wasmZstd(): Zstd {
  ofThread ??= new WasmZstd();
  return ofThread;
}
