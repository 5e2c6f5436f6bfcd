/**
 * Judges that look inside the cluster, at what no client sees: the storage as recovery would find it, the tablets that
 * servers serve, and what the roles say of themselves. `log-judge.ts` judges the logs.
 */
import { ByteBudget, ManualClock, requestContext } from '../../src/env/index.ts';
import { checkDatabase, type CheckReport, type WholeFile } from '../../src/inspect/index.ts';
import { nativeCodecs } from '../../src/platform/index.ts';
import { LOGS_DIRECTORY, type TabletServerCalls } from '../../src/protocol/index.ts';
import type { Cluster, Seat } from './cluster.ts';
import type { Verdicts } from './verdicts.ts';

/** Findings that a report of a failure has. */
const MAX_FINDINGS = 5;
const BUDGET_BYTES = 1 << 20;

/**
 * The whole storage at one instant: METADATA partitions every table, and no file that it lists is missing or damaged
 * (I3, I4). A check takes no simulated time.
 */
export class StorageJudge {
  readonly #cluster: Cluster;
  readonly #verdicts: Verdicts;
  /** Files never change, so each is read once. */
  readonly #wholeFiles = new Map<string, WholeFile>();

  constructor(cluster: Cluster, verdicts: Verdicts) {
    this.#cluster = cluster;
    this.#verdicts = verdicts;
  }

  async check(): Promise<CheckReport> {
    const { store, locks } = this.#cluster;
    const files = (await locks.service.list('')).filter(({ sessionId }) => sessionId === undefined);
    const components = {
      fileSystem: store.files,
      codecs: nativeCodecs(),
      // it stands still, so the check never yields
      clock: new ManualClock(),
      readAllLockFiles: async () => ({ files, damages: [], count: files.length }),
    };
    const report = await checkDatabase(components, { wholeFiles: this.#wholeFiles });
    const lines = report.findings.slice(0, MAX_FINDINGS).map((finding) => JSON.stringify(finding));
    if (lines.length > 0) this.#verdicts.add('storage', lines.join('\n'));
    return report;
  }
}

/** The answer of the tablet server at the seat, without the network; undefined if none answers. */
export async function ask<M extends 'status' | 'holdings'>(
  { network }: Cluster,
  { name, process, log }: Seat,
  method: M,
): Promise<TabletServerCalls[M]['answer'] | undefined> {
  if (process === undefined || log === undefined) return undefined;
  const context = requestContext({ budget: new ByteBudget(BUDGET_BYTES), principal: 'simulator' });
  const message = { to: log.slice(LOGS_DIRECTORY.length) };
  const asked = network.handlerOf(process, name)?.call(method, message, context);
  return asked?.catch(() => undefined) as Promise<TabletServerCalls[M]['answer'] | undefined>;
}

/** No two servers whose leases surely hold serve one tablet (I2). */
export async function judgeServing(cluster: Cluster, verdicts: Verdicts): Promise<void> {
  const owners = new Map<string, string>();
  for (const seat of cluster.servers) {
    const status = await ask(cluster, seat, 'status');
    if (!status?.locked) continue;
    for (const { key, epoch } of status.tablets) {
      const [other, owner] = [owners.get(key), `${seat.name} at epoch ${epoch}`];
      if (other !== undefined)
        verdicts.add('one server', `tablet ${JSON.stringify(key)} is served by ${other} and by ${owner}`);
      owners.set(key, owner);
    }
  }
}

/** No role says that one of its invariants is broken, or that a tablet is damaged. */
export function judgeLine(verdicts: Verdicts, process: string, message: string, fields: object): void {
  const line = `${message} ${JSON.stringify(fields)}`;
  if (/invariant|damaged|is missing/.test(line)) verdicts.add('roles', `${process}: ${line}`);
}
