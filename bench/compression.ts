/**
 * How small real pages become, block by block so that a point read decodes one: the HTML of eight of Debian's
 * documentation packages (see compression/corpus.ts), and of two that are there in three versions. Ratios count what
 * the blocks of a file share; times are of the processor.
 *
 *   npm run bench -- compression [--sites=NAME,NAME] [--block-kb=64] [--json]
 */
import { nativeCodecs } from '../src/platform/index.ts';
import { packBlocks, SITES, sitePages, versionedPages } from './compression/corpus.ts';
import { gzip, type Measure, type Method, measure, ours } from './compression/measure.ts';

const option = (name: string): string | undefined =>
  process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);

const KIB = 1024;
const BLOCK_BYTES = Number(option('block-kb') ?? 64) * KIB;
/** Versions of a page are near one another when a block holds several pages. */
const VERSIONS_BLOCK_BYTES = 256 * KIB;
const BEST_LEVEL = 19;

const codecs = nativeCodecs();
const BEST: Method = ours(`zstd-dict ${BEST_LEVEL}`, { kind: 'zstd-dict', level: BEST_LEVEL }, codecs, { every: 8 });
const METHODS: readonly Method[] = [
  ours('lz4', { kind: 'lz4' }, codecs),
  gzip,
  ours('zstd 3', { kind: 'zstd', level: 3 }, codecs),
  ours('zstd 9', { kind: 'zstd', level: 9 }, codecs),
  ours('zstd-dict 3', { kind: 'zstd-dict', level: 3 }, codecs),
  ours('zstd-dict 9', { kind: 'zstd-dict', level: 9 }, codecs),
  BEST,
  ours('two-pass', { kind: 'two-pass' }, codecs),
  ours('two-pass in the block', { kind: 'two-pass' }, codecs, { shares: false }),
];

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const bytesOf = (blocks: readonly Buffer[]): number => blocks.reduce((sum, { length }) => sum + length, 0);

interface Corpus {
  readonly name: string;
  readonly blocks: readonly Buffer[];
}

/** One line a corpus, then the table: a line a method, a column a corpus. */
function report(title: string, corpora: readonly Corpus[]): void {
  const results = new Map<Method, Measure[]>(METHODS.map((method) => [method, []]));
  console.log(`${title}:`);
  for (const { name, blocks } of corpora) {
    const total = bytesOf(blocks);
    console.log(
      `  ${name}: ${(total / 1e6).toFixed(1)} MB, ${blocks.length} blocks of ${(total / blocks.length / KIB).toFixed(0)} KiB in the mean`,
    );
    for (const method of METHODS) results.get(method)?.push(measure(method, blocks));
  }
  const lines = METHODS.map((method) => {
    const measures = results.get(method) ?? [];
    const unseen = measures.flatMap(({ unseenRatio }) => unseenRatio ?? []);
    return {
      method: method.name,
      ...Object.fromEntries(corpora.map(({ name }, i) => [name, (measures[i]?.ratio ?? 0).toFixed(2)])),
      mean: mean(measures.map(({ ratio }) => ratio)).toFixed(2),
      unseen: unseen.length > 0 ? mean(unseen).toFixed(2) : '',
      'encode MB/s': mean(measures.map(({ encodeMBs }) => encodeMBs)).toFixed(0),
      'decode MB/s': mean(measures.map(({ decodeMBs }) => decodeMBs)).toFixed(0),
    };
  });
  if (process.argv.includes('--json')) for (const line of lines) console.log(JSON.stringify({ table: title, ...line }));
  else console.table(Object.fromEntries(lines.map(({ method, ...columns }) => [method, columns])));
}

try {
  const wanted = option('sites')?.split(',');
  const sites = SITES.filter(([name]) => !wanted || wanted.some((word) => name.startsWith(word)));
  report(
    `pages, ${BLOCK_BYTES / KIB} KiB blocks`,
    sites.map((site) => ({ name: site[0], blocks: packBlocks(sitePages(site), BLOCK_BYTES) })),
  );
  const versions = versionedPages();
  report(
    'pages in three versions',
    [BLOCK_BYTES, VERSIONS_BLOCK_BYTES].map((bytes) => ({
      name: `${bytes / KIB} KiB blocks`,
      blocks: packBlocks(versions, bytes),
    })),
  );
  console.log(
    `"unseen": on blocks that the shared bytes were not chosen from. ${BEST.name}: on one block in ${BEST.every}. Node ${process.versions.node}.`,
  );
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
