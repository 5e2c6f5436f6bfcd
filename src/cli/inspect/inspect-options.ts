/** The common options of `edubba inspect`. */
export interface InspectOptions {
  /** Check everything that can be checked. */
  readonly verify?: boolean;
  /** Show what is inside, one by one. */
  readonly entries?: boolean;
  readonly json?: boolean;
}
