/** Messages between the test and the process that it judges. Each is answered by counts. */
import type { WorkloadName } from './workloads.ts';

/** A class of the program. Node has classes of the same names, with other texts. */
export interface ProgramClass {
  /** Its name in the sources. */
  readonly name: string;
  /** Its text in the bundle. */
  readonly text: string;
}

/** The objects of a class that were found: an object counts each time that a method of it is called. */
export interface ClassCount {
  readonly name: string;
  fast: number;
  dictionaries: number;
}

export type Message =
  | { readonly kind: 'workload'; readonly name: WorkloadName; readonly calls: number }
  /** Makes a dictionary of a live object of the class. */
  | { readonly kind: 'plant'; readonly planted: ProgramClass }
  /** Counts the live objects of these classes, and watches those that are used from now on. */
  | { readonly kind: 'watch'; readonly classes: readonly ProgramClass[] }
  /** Asks for all counts up to now. */
  | { readonly kind: 'counts' };
