/** Starts a process of a cluster with its role: engines, transport, and a tablet server or a master over them. */
import type { Env } from '../../env/index.ts';
import { checkSettings, type DatabaseSettings } from '../settings/settings.ts';
import { type ClusterOptions, openClusterProcess } from './cluster-process.ts';
import { MasterRole, type MasterRoleOptions } from './master-role.ts';
import { openTogether } from './open-parts.ts';
import { TabletServerRole } from './tablet-server-role.ts';

/** Without what follows from the settings of a database. */
export type RoleClusterOptions = Omit<ClusterOptions, 'requestBytes' | 'compactionsAtOnce' | 'backupStore'>;

export interface RunningTabletServer extends Pick<TabletServerRole, 'service' | 'passer' | 'decoder'> {
  readonly env: Env;
  /** HOST:PORT by which other processes reach it. */
  readonly clusterAddress: string;
  /** Gives its tablets up, and ends the process' part in the cluster. */
  close(): Promise<void>;
}

/**
 * Resolves when the server takes tablets. Fails as `openClusterProcess` and `TabletServerRole.start` do;
 * INVALID_ARGUMENT for wrong settings. `given`: the others have their defaults.
 */
export async function startTabletServer(
  options: RoleClusterOptions,
  given?: Partial<DatabaseSettings>,
): Promise<RunningTabletServer> {
  const settings = checkSettings(given);
  const { requestBytes, compactionsAtOnce, backupStore } = settings;
  return openTogether(async (parts) => {
    const all = { ...options, requestBytes, compactionsAtOnce, backupStore };
    const { env, address, listening } = await openClusterProcess(all, 'tabletserver', parts);
    const { service, passer, decoder } = parts.add(await TabletServerRole.start({ env, address, settings }));
    return { service, passer, decoder, env, clusterAddress: listening };
  });
}

export interface RunningMaster {
  readonly clusterAddress: string;
  /** Releases the lock, if it has it. */
  close(): Promise<void>;
}

export interface MasterOptions
  extends Partial<Pick<DatabaseSettings, 'requestBytes' | 'keepDeletedMs' | 'backupStore'>> {
  /** Called when it has the lock, and when it has lost it. */
  readonly onChange?: MasterRoleOptions['onChange'];
}

/** Resolves when it stands by. Fails as `openClusterProcess` does. */
export async function startMaster(
  options: RoleClusterOptions,
  { onChange, ...given }: MasterOptions = {},
): Promise<RunningMaster> {
  const { requestBytes, keepDeletedMs, backupStore } = checkSettings(given);
  return openTogether(async (parts) => {
    const all = { ...options, requestBytes, compactionsAtOnce: 0, backupStore };
    const { env, address, listening } = await openClusterProcess(all, 'master', parts);
    parts.add(new MasterRole({ env, address, keepDeletedMs, ...(onChange && { onChange }) }));
    return { clusterAddress: listening };
  });
}
