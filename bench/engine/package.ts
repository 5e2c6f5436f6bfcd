/** Edubba as its users get it: the entry of the package, not the modules that it is bundled from. */
import type * as embedded from '../../src/embedded/index.ts';

const ENTRY: string = 'edubba';

export const { open, RowMutation } = (await import(ENTRY)) as typeof embedded;
export type RowMutation = embedded.RowMutation;
