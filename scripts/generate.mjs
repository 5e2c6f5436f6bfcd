/**
 * Makes src/grpc/generated from proto/: TypeScript messages of protobuf-es, one file a .proto file.
 * The compiler (buf) and its plugin are no dependencies of the package: npx fetches them into a temporary folder. Their versions stand
 * below; the plugin's must be that of the runtime @bufbuild/protobuf in package.json.
 *
 *   node scripts/generate.mjs
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const BUF = '@bufbuild/buf@1.75.0';
const PLUGIN = '@bufbuild/protoc-gen-es@2.17.0';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'src/grpc/generated');
const work = mkdtempSync(join(tmpdir(), 'edubba-generate-'));

try {
  writeFileSync(join(work, 'package.json'), '{ "private": true }');
  writeFileSync(
    join(work, 'buf.gen.yaml'),
    JSON.stringify({
      version: 'v2',
      plugins: [{ local: 'protoc-gen-es', out, opt: ['target=ts', 'import_extension=ts', 'erasable_syntax=true'] }],
    }),
  );
  rmSync(out, { recursive: true, force: true });
  execFileSync('npx', ['--yes', '-p', BUF, '-p', PLUGIN, 'buf', 'generate', join(root, 'proto'), '--template', join(work, 'buf.gen.yaml')], { cwd: work, stdio: 'inherit' });
} finally {
  rmSync(work, { recursive: true, force: true });
}
