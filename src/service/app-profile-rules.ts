/**
 * What app profiles allow, for the doors whose calls name one. Any id may be named until the instance has profiles of
 * its own: programs that name profiles run before anyone has created these.
 */
import { BigtableError, Code, notFound, quote } from '../base/index.ts';
import type { Priority } from '../env/index.ts';
import { type AppProfile, DEFAULT_APP_PROFILE, type Instance } from '../model/index.ts';

/** Which kinds of calls there are. */
export type CallKind = 'read' | 'write' | 'transaction';

export interface AppProfileRules {
  /** Begins to follow the profiles; before this everything is allowed. */
  start(): Promise<void>;
  stop(): void;
  /**
   * The profile's priority; undefined where nothing is known of it. NOT_FOUND: the table's instance has other profiles,
   * and not this one. FAILED_PRECONDITION: it does not allow such calls. `appProfile`: '' = the default one.
   */
  check(table: string, appProfile: string, kind: CallKind): Priority | undefined;
}

/** What an app profile allows. */
interface Rule {
  readonly priority: Priority;
  readonly allowsWrites: boolean;
  readonly allowsTransactions: boolean;
}

/** The rules of one instance. */
export class InstanceRules {
  readonly #instance: string;
  readonly #byId: ReadonlyMap<string, Rule>;
  /** True where a profile of any id may be named. */
  readonly #isOpen: boolean;

  constructor({ name, appProfiles }: Instance) {
    this.#instance = name;
    this.#byId = new Map(appProfiles.map((profile) => [profile.id, ruleOf(profile)]));
    this.#isOpen = appProfiles.every(({ id }) => id === DEFAULT_APP_PROFILE);
  }

  check(appProfile: string, kind: CallKind): Priority | undefined {
    const id = appProfile === '' ? DEFAULT_APP_PROFILE : appProfile;
    const rule = this.#byId.get(id);
    if (rule === undefined) {
      if (this.#isOpen && id !== DEFAULT_APP_PROFILE) return undefined;
      throw notFound(`app profile ${this.#instance}/appProfiles/${quote(id, 100)} does not exist`);
    }
    if (kind === 'transaction' && !rule.allowsTransactions) throw this.#refusal(id, 'single-row transactions');
    if (kind !== 'read' && !rule.allowsWrites) throw this.#refusal(id, 'writes');
    return rule.priority;
  }

  #refusal(id: string, what: string): BigtableError {
    const name = `${this.#instance}/appProfiles/${id}`;
    return new BigtableError(Code.FAILED_PRECONDITION, `app profile ${name} does not allow ${what}`);
  }
}

function ruleOf({ routing, isolation }: AppProfile): Rule {
  const allowsWrites = isolation.kind === 'standard';
  return {
    priority: isolation.kind === 'standard' ? isolation.priority : 'low',
    allowsWrites,
    allowsTransactions: allowsWrites && routing.kind === 'single' && routing.allowsTransactions,
  };
}
