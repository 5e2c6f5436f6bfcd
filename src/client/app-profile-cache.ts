/**
 * What the app profiles of all instances allow, as this process knows it: read from the lock service at start, updated
 * by its watch. Only instances that have a file have rules.
 */
import { toBigtableError } from '../base/index.ts';
import { type Clock, followChanges, listFiles, type LockService, type Logger } from '../env/index.ts';
import { decodeInstance, instancePath } from '../metadata/index.ts';
import { type AppProfilePriority, type AppProfileRules, type CallKind, InstanceRules } from '../service/index.ts';

export interface AppProfileCacheParts {
  readonly lockService: LockService;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class AppProfileCache implements AppProfileRules {
  readonly #parts: AppProfileCacheParts;
  /** By full name of the instance. */
  readonly #byInstance = new Map<string, InstanceRules>();
  #stopWatching: (() => void) | undefined;

  constructor(parts: AppProfileCacheParts) {
    this.#parts = parts;
  }

  /** Before this, everything is allowed. */
  async start(): Promise<void> {
    const prefix = instancePath('');
    this.#stopWatching = await followChanges(this.#parts, prefix, {
      onChange: (event, missed) => {
        if (event.kind !== 'changed' && event.kind !== 'deleted') return;
        this.#refresh(event.path).catch((thrown: unknown) => {
          this.#log('the app profiles of an instance could not be read', thrown);
          missed();
        });
      },
      readAgain: () => this.#refreshAll(),
      onEnd: () => this.#parts.logger.error('changes of app profiles are no longer reported'),
    });
    await this.#refreshAll();
  }

  stop(): void {
    this.#stopWatching?.();
  }

  check(table: string, appProfile: string, kind: CallKind): AppProfilePriority | undefined {
    // nearly always there are none
    if (this.#byInstance.size === 0) return undefined;
    return this.#byInstance.get(table.slice(0, table.lastIndexOf('/tables/')))?.check(appProfile, kind);
  }

  async #refreshAll(): Promise<void> {
    const prefix = instancePath('');
    const files = await listFiles(this.#parts.lockService, prefix);
    const paths = new Set(files.map(({ path }) => path));
    const gone = [...this.#byInstance.keys()].filter((name) => !paths.has(prefix + name));
    for (const path of [...paths, ...gone.map((name) => prefix + name)]) await this.#refresh(path);
  }

  /** Always a new read: the last one that is begun wins, because the service answers them in order. */
  async #refresh(path: string): Promise<void> {
    const file = await this.#parts.lockService.read(path);
    const name = path.slice(instancePath('').length);
    if (file === undefined) this.#byInstance.delete(name);
    else this.#byInstance.set(name, new InstanceRules(decodeInstance(path, file.contents).instance));
  }

  #log(message: string, thrown: unknown): void {
    this.#parts.logger.error(message, { error: toBigtableError(thrown).message });
  }
}
