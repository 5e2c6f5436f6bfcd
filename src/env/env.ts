/** The five seams and the components beside them, as one plain object that is handed in at construction. */
import type { ByteBudget } from './budget.ts';
import type { Clock, Random } from './clock.ts';
import type { Codecs } from './codecs.ts';
import type { FileSystem } from './file-system.ts';
import type { LockService } from './lock-service.ts';
import type { Logger, Metrics } from './telemetry.ts';
import type { Transport } from './transport.ts';
import type { Workers } from './workers.ts';

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
  /** Bytes of requests in flight and answers not yet sent, all together. */
  readonly requestBudget: ByteBudget;
}
