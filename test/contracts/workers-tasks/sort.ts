/** Answers the list sorted, and changes the argument by that. */
export async function run(argument: { list: number[] }): Promise<number[]> {
  return argument.list.sort((a, b) => a - b);
}
