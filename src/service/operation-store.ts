/**
 * The long-running operations of the API that are done, kept so that every front door of a database finds those that
 * another one has answered. What an operation says is the door's own matter.
 */
import type { RequestContext } from '../env/index.ts';

export interface KeptOperation {
  /** operations/RESOURCE/operations/ID. */
  readonly name: string;
  readonly contents: Uint8Array;
}

/** Larger contents are not kept. */
export const MAX_OPERATION_BYTES = 64 * 1024;

export interface OperationStore {
  /** Keeps an operation about the resource; returns its name. The oldest goes where there are too many. */
  keep(context: RequestContext, resource: string, contents: Uint8Array): Promise<string>;
  /** Undefined where there is none of that name, or no longer. */
  find(context: RequestContext, name: string): Promise<KeptOperation | undefined>;
  /** Those whose name starts with `prefix`, by name. */
  list(context: RequestContext, prefix: string): Promise<readonly KeptOperation[]>;
  /** False where there is none of that name, or no longer. */
  forget(context: RequestContext, name: string): Promise<boolean>;
}
