/** A table that was deleted and is kept for a time, in which it can be restored under its name. */
export interface DeletedTable {
  /** The full name that it had. Several deleted tables may have had one name: the last of them is restored. */
  readonly name: string;
  /** When it was deleted, microseconds since 1970. */
  readonly deletedMicros: number;
  /** From then on it is removed, with its files. */
  readonly keptUntilMicros: number;
}
