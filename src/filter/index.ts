/** filter: the twenty row filters as plain data, and their interpreter. Pure; regular expressions are RE2's. */
export { checkFilter } from './check.ts';
export { compileFilter, FilterCompiler } from './compile.ts';
export type { Bound, RowFilter } from './filter.ts';
export { namedFamilies } from './named-families.ts';
export { type ColumnSpan, type FilterProgram, type FilterRun, Hint } from './program.ts';
