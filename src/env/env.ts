/** The five seams and the components next to them, as one plain object that is handed in at construction. */
import type { ByteBudget } from './budget/budget.ts';
import type { Clock, Random } from './seams/clock.ts';
import type { Codecs } from './seams/codecs.ts';
import type { FileSystem, StoredFiles } from './seams/file-system.ts';
import type { LockService } from './seams/lock-service.ts';
import type { Logger, Metrics } from './seams/telemetry.ts';
import type { Transport } from './calls/transport.ts';
import type { Workers } from './seams/workers.ts';

export interface Env {
  readonly fileSystem: FileSystem;
  readonly lockService: LockService;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly workers: Workers;
  readonly codecs: Codecs;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /**
   * The store that backups are exported to, apart from `fileSystem`; it is opened at the first call. Undefined: none is
   * set.
   */
  readonly backupStore?: (() => Promise<StoredFiles>) | undefined;
  /** The budget of requests in flight and answers not yet sent. */
  readonly requestBudget: ByteBudget;
}
