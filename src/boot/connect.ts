/** The service of a server somewhere else, over its Cloud Bigtable API. */
import { ByteBudget, type Env, Metrics } from '../env/index.ts';
import { connectService } from '../grpc/index.ts';
import { systemClock } from '../platform/index.ts';
import type { Service } from '../service/index.ts';
import { DEFAULT_SETTINGS } from './settings.ts';

export interface Connection {
  readonly service: Service;
  /** What a caller of the service needs here: the rest of the environment is the server's. */
  readonly env: Pick<Env, 'clock' | 'metrics' | 'requestBudget'>;
  close(): Promise<void>;
}

/** `address`: HOST:PORT. Nothing is sent before the first call. */
export async function connect(address: string): Promise<Connection> {
  const service = connectService({ address, clock: systemClock });
  return {
    service,
    env: { clock: systemClock, metrics: new Metrics(), requestBudget: new ByteBudget(DEFAULT_SETTINGS.requestBytes) },
    close: async () => service.close(),
  };
}
