/** Ends its thread: by an uncaught exception, or by leaving. */
export function run({ how }: { how: 'throw' | 'exit' }): Promise<never> {
  if (how === 'exit') process.exit(3);
  setImmediate(() => {
    throw new Error('out of the blue');
  });
  return new Promise(() => {});
}
