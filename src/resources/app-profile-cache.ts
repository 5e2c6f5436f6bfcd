/** What the app profiles of all instances allow, as this process knows it: those of instances that have a file. */
import type { Priority } from '../env/index.ts';
import { instanceOfTable } from '../model/index.ts';
import { type AppProfileRules, type CallKind, InstanceRules } from '../service/index.ts';
import { FollowedFiles, type FollowedFilesParts } from './followed-files.ts';
import { decodeInstance, instancePath } from './instance-file.ts';

export class AppProfileCache implements AppProfileRules {
  /** By full name of the instance. */
  readonly #instances: FollowedFiles<InstanceRules>;

  constructor(parts: FollowedFilesParts) {
    this.#instances = new FollowedFiles(
      parts,
      instancePath(''),
      ({ path, contents }) => new InstanceRules(decodeInstance(path, contents).instance),
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

  check(table: string, appProfile: string, kind: CallKind): Priority | undefined {
    // nearly always there are none
    if (this.#instances.isEmpty) return undefined;
    return this.#instances.get(instanceOfTable(table))?.check(appProfile, kind);
  }
}
