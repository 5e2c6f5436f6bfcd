/**
 * Long-running operations in files of the lock service (docs/decisions/0074-operations-of-every-door.md).
 *
 * Invariant: there are at most OPERATION_FILES files of at most MAX_OPERATION_BYTES of contents. A file is reused and
 * never deleted: a deletion leaves something behind in some lock services. An id begins with the number of its file, so
 * that an operation is found by one read.
 */
import { assert, BigtableError, Code, toBigtableError } from '../base/index.ts';
import {
  type Clock,
  listFiles,
  type LockService,
  type Random,
  type RequestContext,
  type SmallFile,
  within,
  writeSettled,
} from '../env/index.ts';
import {
  decodeOperationFile,
  encodeOperationFile,
  OPERATION_FILES,
  type OperationFile,
  OPERATIONS_DIRECTORY,
  operationPath,
} from '../protocol/index.ts';
import { type KeptOperation, MAX_OPERATION_BYTES, type OperationStore } from '../service/index.ts';

/** An operation is kept for a day, if no more than OPERATION_FILES are made meanwhile. */
const KEPT_MICROS = 86_400_000_000;
/** Other doors may take the file that was chosen. */
const ATTEMPTS = 10;
const ID_FORM = /\/operations\/([0-9a-f]{2})[0-9a-f]{32}$/;
const NO_BYTES = new Uint8Array(0);

export interface OperationFilesParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly random: Random;
}

interface Place {
  readonly index: number;
  /** The version of its file; 0 where there is none. */
  readonly version: number;
  /** When its operation was made; -Infinity where it is free. */
  readonly madeMicros: number;
}

export class OperationFiles implements OperationStore {
  readonly #parts: OperationFilesParts;

  constructor(parts: OperationFilesParts) {
    this.#parts = parts;
  }

  keep(context: RequestContext, resource: string, contents: Uint8Array): Promise<string> {
    assert(contents.length <= MAX_OPERATION_BYTES, 'an operation that is kept is small');
    return within(this.#keep(resource, contents), context, this.#parts.clock);
  }

  find(context: RequestContext, name: string): Promise<KeptOperation | undefined> {
    return within(this.#find(name), context, this.#parts.clock).then((found) => found?.operation);
  }

  async list(context: RequestContext, prefix: string): Promise<readonly KeptOperation[]> {
    const files = await within(this.#files(), context, this.#parts.clock);
    const found = files.flatMap((file) => this.#operationIn(file) ?? []);
    return found.filter(({ name }) => name.startsWith(prefix)).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  forget(context: RequestContext, name: string): Promise<boolean> {
    return within(this.#forget(name), context, this.#parts.clock);
  }

  async #keep(resource: string, contents: Uint8Array): Promise<string> {
    const { clock, random } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      const { index, version } = this.#choose(await this.#files());
      const path = operationPath(index);
      const id = path.slice(OPERATIONS_DIRECTORY.length) + random.uniqueName();
      const name = `operations/${resource}/operations/${id}`;
      const file = encodeOperationFile({ name, contents, madeMicros: clock.nowMicros() });
      try {
        await writeSettled(this.#parts, path, file, { version });
        return name;
      } catch (thrown) {
        if (toBigtableError(thrown).code !== Code.ABORTED || attempt === ATTEMPTS) throw thrown;
      }
    }
  }

  /** A free place, any of them, so that doors seldom choose the same one; else that of the oldest operation. */
  #choose(files: readonly SmallFile[]): Place {
    const byPath = new Map(files.map((file) => [file.path, file]));
    const places = Array.from({ length: OPERATION_FILES }, (_, index): Place => {
      const file = byPath.get(operationPath(index));
      const madeMicros = (file && this.#operationIn(file)?.madeMicros) ?? Number.NEGATIVE_INFINITY;
      return { index, version: file?.version ?? 0, madeMicros };
    });
    const leastMicros = Math.min(...places.map(({ madeMicros }) => madeMicros));
    const best = places.filter(({ madeMicros }) => madeMicros === leastMicros);
    return best[Math.floor(this.#parts.random.float() * best.length)]!;
  }

  async #find(name: string): Promise<{ readonly operation: OperationFile; readonly version: number } | undefined> {
    const place = ID_FORM.exec(name)?.[1];
    if (place === undefined) return undefined;
    const file = await this.#parts.lockService.read(OPERATIONS_DIRECTORY + place);
    const operation = file && this.#operationIn(file);
    return operation?.name === name ? { operation, version: file!.version } : undefined;
  }

  async #forget(name: string): Promise<boolean> {
    for (;;) {
      const found = await this.#find(name);
      if (found === undefined) return false;
      try {
        const path = operationPath(Number.parseInt(ID_FORM.exec(name)![1]!, 16));
        await writeSettled(this.#parts, path, this.#freeFile(), { version: found.version });
        return true;
      } catch (thrown) {
        // another operation has taken its place
        if (toBigtableError(thrown).code !== Code.ABORTED) throw thrown;
      }
    }
  }

  /** Too old to be an operation, and unlike that of any other door: so each of them knows its own write. */
  #freeFile(): Uint8Array {
    return encodeOperationFile({ name: this.#parts.random.uniqueName(), contents: NO_BYTES, madeMicros: 0 });
  }

  #files(): Promise<SmallFile[]> {
    return listFiles(this.#parts.lockService, OPERATIONS_DIRECTORY);
  }

  /** Undefined where the file is free, too old, or of a form that this program does not know. */
  #operationIn({ contents }: SmallFile): OperationFile | undefined {
    try {
      const operation = decodeOperationFile(contents);
      const isOld = operation && operation.madeMicros + KEPT_MICROS < this.#parts.clock.nowMicros();
      return isOld ? undefined : operation;
    } catch (thrown) {
      if (thrown instanceof BigtableError) return undefined;
      throw thrown;
    }
  }
}
