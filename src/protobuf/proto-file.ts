/** The text of a .proto file that defines the given types and all that they use, by name. */
import type { Codec } from './codec.ts';

/** `head`: the lines above the definitions. */
export function protoFile(head: readonly string[], codecs: readonly Codec<unknown>[]): string {
  const definitions = new Map<string, readonly string[]>();
  const add = (codec: Codec<unknown>): void => {
    const definition = codec.define();
    if (definition === undefined || definitions.has(definition.name)) return;
    definitions.set(definition.name, definition.lines);
    for (const used of definition.uses) add(used);
  };
  for (const codec of codecs) add(codec);
  const sorted = [...definitions].sort(([a], [b]) => (a < b ? -1 : 1));
  return [head, ...sorted.map(([, lines]) => lines)].map((lines) => `${lines.join('\n')}\n`).join('\n');
}
