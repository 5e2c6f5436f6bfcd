/**
 * Limits of the API (docs/ARCHITECTURE.md, "Limits"). `default` follows the paper where it is wider than the cloud
 * (row keys to 64 KB); `cloud` is what Cloud Bigtable enforces and is used when compatibility is tested.
 */

export interface Limits {
  readonly rowKeyBytes: number;
  readonly familyNameChars: number;
  readonly qualifierBytes: number;
  readonly valueBytes: number;
  readonly mutationsPerRequest: number;
  readonly filterBytes: number;
  readonly filterDepth: number;
  /**
   * Stages that one cell and its copies may be pushed into. Only nested interleaves come near it: a filter of the size
   * limit has some 5,000 parts.
   */
  readonly filterPushes: number;
  /** Stages that a cell may pass one after another. */
  readonly filterStages: number;
  readonly labelChars: number;
  readonly tableIdChars: number;
  readonly gcRuleBytes: number;
  /** Rows above this size cannot be read. */
  readonly rowBytes: number;
  /** True when timestamps below 0 (other than -1, the server's time) are refused. */
  readonly nonNegativeTimestamps: boolean;
}

const KIB = 1024;
const MIB = 1024 * KIB;

const CLOUD: Limits = Object.freeze({
  rowKeyBytes: 4 * KIB,
  familyNameChars: 64,
  qualifierBytes: 16 * KIB,
  valueBytes: 100 * MIB,
  mutationsPerRequest: 100_000,
  filterBytes: 20_480,
  filterDepth: 20,
  filterPushes: 16_384,
  filterStages: 1024,
  labelChars: 15,
  tableIdChars: 50,
  gcRuleBytes: 500,
  rowBytes: 256 * MIB,
  nonNegativeTimestamps: true,
});

export const LIMITS: Readonly<Record<'default' | 'cloud', Limits>> = Object.freeze({
  default: Object.freeze({ ...CLOUD, rowKeyBytes: 64 * KIB, nonNegativeTimestamps: false }),
  cloud: CLOUD,
});
