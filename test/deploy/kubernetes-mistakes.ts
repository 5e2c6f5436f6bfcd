/**
 * Checks manifests of Kubernetes against its API, as the package kubernetes-types declares it: made from the API's own
 * schemas, a declaration for each kind. A manifest becomes a typed constant of TypeScript, whose compiler then names
 * every field that is unknown, of another type, or missing.
 */
import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './files.ts';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es5.d.ts'],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  types: [],
};

/** Files of the package and of the language, which are read once: name -> file. */
const DECLARATIONS = new Map<string, ts.SourceFile>();

/** What is wrong with the manifests, each with the name of its manifest; none if all are right. */
export function mistakesIn(manifests: readonly Manifest[]): string[] {
  // a file that is nowhere, from where the package is found
  const path = join(ROOT, 'test', 'deploy', 'manifests.ts');
  // a line each, so that the line of a mistake tells the manifest
  const text = manifests.map((one, i) => `const m${i}: ${typeOf(one)} = ${JSON.stringify(one)};\n`).join('');
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile } = host;
  host.getSourceFile = (name, ...rest) => {
    if (name === path) return ts.createSourceFile(name, text, ts.ScriptTarget.ES2022);
    const declarations = DECLARATIONS.get(name) ?? getSourceFile(name, ...rest);
    if (declarations) DECLARATIONS.set(name, declarations);
    return declarations;
  };
  return ts.getPreEmitDiagnostics(ts.createProgram([path], OPTIONS, host)).map(({ file, start = 0, messageText }) => {
    const line = file?.fileName === path ? file.getLineAndCharacterOfPosition(start).line : -1;
    return `${manifests[line]?.metadata.name ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}

/** v1 is the file core/v1, networking.k8s.io/v1 is networking/v1. */
function typeOf({ apiVersion, kind }: Manifest): string {
  const [version = '', group = 'core'] = apiVersion.split('/').reverse();
  return `import('kubernetes-types/${group.replace(/\..*/, '')}/${version}').${kind}`;
}
