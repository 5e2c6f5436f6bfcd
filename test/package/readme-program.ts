/**
 * README's program, as it stands there: what is tested is what is read. A part that compacts in a thread is added, for
 * the program itself has too little data.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './project.ts';

const MORE = `
const again = await open('./data');
await again.flush();
await again.compact('webtable');
console.log('compacted');
await again.close();
`;

/** As an ES module, which is TypeScript too. */
export async function readmeProgram(): Promise<string> {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  const program = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)]
    .map(([, text = '']) => text)
    .find((text) => text.includes("await open('./data')"));
  if (program === undefined) throw new Error("README.md has no TypeScript program with await open('./data')");
  return `${program}${MORE}`;
}

/** The same in CommonJS, which has neither `import` nor `await` outside functions. */
export function asCommonJs(program: string): string {
  const required = program.replace(/^import (\{[^}]*\}) from ('edubba[^']*');$/gm, 'const $1 = require($2);');
  return `(async () => {\n${required}\n})();\n`;
}
