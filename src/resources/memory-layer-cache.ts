/** Which instances are served from memory, as this process knows it: those whose file says so. */
import { instanceOfTable, isServedFromMemory } from '../model/index.ts';
import type { MemoryLayerSource } from '../service/index.ts';
import { FollowedFiles, type FollowedFilesParts } from './followed-files.ts';
import { decodeInstance, instancePath } from './instance-file.ts';

export class MemoryLayerCache implements MemoryLayerSource {
  /** By full name of the instance. */
  readonly #instances: FollowedFiles<boolean>;
  readonly #listeners = new Set<() => void>();

  constructor(parts: FollowedFilesParts) {
    this.#instances = new FollowedFiles(
      parts,
      instancePath(''),
      ({ path, contents }) => isServedFromMemory(decodeInstance(path, contents).instance),
      () => {
        for (const changed of this.#listeners) changed();
      },
    );
  }

  start(): Promise<void> {
    return this.#instances.start();
  }

  stop(): void {
    this.#instances.stop();
  }

  readAgain(): Promise<void> {
    return this.#instances.readAgain();
  }

  /** Reads the file of that path again if it is one of these. */
  changed(path: string): Promise<void> {
    return this.#instances.changed(path);
  }

  isOn(table: string): boolean {
    // nearly always there are none
    if (this.#instances.isEmpty) return false;
    return this.#instances.get(instanceOfTable(table)) === true;
  }

  onChange(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => void this.#listeners.delete(changed);
  }
}
