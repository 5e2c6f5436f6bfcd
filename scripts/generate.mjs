/**
 * Makes src/grpc/generated from proto/: TypeScript messages of protobuf-es, one file for each .proto file, and proto/generated.json, the digests of both.
 * The compiler (buf) and its plugin are no dependencies of the package: npx fetches them into a temporary folder.
 *
 *   node scripts/generate.mjs           generates
 *   node scripts/generate.mjs --check   generates elsewhere and compares; closes with 'N passed, N failed, N skipped'
 *
 * `npm run check` needs no network: it compares the digests alone (scripts/lint/generated-code.mjs).
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closingLine, ROOT } from './lib/repository.mjs';
import { DIGESTS, digestOf, digests, GENERATED, GENERATORS } from './lint/generated-code.mjs';

/** Writes the generated files into `out`, which must not be there. */
function generateInto(out, work) {
  writeFileSync(join(work, 'package.json'), '{ "private": true }');
  const opt = ['target=ts', 'import_extension=ts', 'erasable_syntax=true'];
  writeFileSync(
    join(work, 'buf.gen.yaml'),
    JSON.stringify({ version: 'v2', plugins: [{ local: 'protoc-gen-es', out, opt }] }),
  );
  const packages = GENERATORS.flatMap((name) => ['-p', name]);
  execFileSync(
    'npx',
    ['--yes', ...packages, 'buf', 'generate', join(ROOT, 'proto'), '--template', join(work, 'buf.gen.yaml')],
    { cwd: work, stdio: 'inherit' },
  );
}

const work = mkdtempSync(join(tmpdir(), 'edubba-generate-'));
try {
  const made = join(work, 'made');
  generateInto(made, work);
  if (process.argv.includes('--check')) {
    const isSame = digestOf(made) === digestOf(join(ROOT, GENERATED));
    if (!isSame)
      console.error(`${GENERATED} is not what proto/ and ${GENERATORS.join(', ')} give: node scripts/generate.mjs`);
    console.log(closingLine({ passed: isSame ? 1 : 0, failed: isSame ? 0 : 1, skipped: 0 }));
    process.exitCode = isSame ? 0 : 1;
  } else {
    rmSync(join(ROOT, GENERATED), { recursive: true, force: true });
    cpSync(made, join(ROOT, GENERATED), { recursive: true });
    writeFileSync(join(ROOT, DIGESTS), `${JSON.stringify(digests(), null, 2)}\n`);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
