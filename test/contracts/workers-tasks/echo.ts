/** Answers its argument. */
export function run(argument: unknown): unknown {
  return argument;
}
