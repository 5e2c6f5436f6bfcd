/** The tables of docs/COMPATIBILITY.md: what each call, filter, mutation, aggregate, rule and limit does, and where. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './repository.mjs';

/** The tables stand between these lines of the page. */
const BEGIN = '<!-- Tables: node scripts/compatibility.mjs --write -->';
const END = '<!-- End of the tables. -->';
/** The services of the API, and their definitions in proto/. */
const SERVICES = [
  { service: 'google.bigtable.v2.Bigtable', file: 'google/bigtable/v2/bigtable.proto', title: 'Data' },
  {
    service: 'google.bigtable.admin.v2.BigtableTableAdmin',
    file: 'google/bigtable/admin/v2/bigtable_table_admin.proto',
    title: 'Tables',
  },
  {
    service: 'google.bigtable.admin.v2.BigtableInstanceAdmin',
    file: 'google/bigtable/admin/v2/bigtable_instance_admin.proto',
    title: 'Instances',
  },
];
const SECTIONS = [
  { section: 'filter', title: 'Filters' },
  { section: 'mutation', title: 'Mutations' },
  { section: 'aggregate', title: 'Aggregates' },
  { section: 'rule', title: 'Garbage-collection rules' },
];
/** Remarks of the definitions on calls that the cloud does not offer to all, and what the table says of them. */
const REMARKS = [
  { remark: /private alpha release/, says: 'private alpha' },
  { remark: /only intended to be used by the official/, says: "Google's clients only" },
];

/** @typedef {Map<string, string>} Record The outcome of each name, such as "filter sink". */

/**
 * A record: lines of "SECTION NAME: WORD".
 *
 * @param {string} name
 * @returns {Record}
 */
function recordOf(name) {
  const text = readFileSync(join(ROOT, 'test/interop/baselines', name), 'utf8');
  const lines = text.trimEnd().split('\n');
  return new Map(
    lines.map((line) => {
      const [, what = '', word = ''] = /^(.*): (.*)$/.exec(line) ?? [];
      return [what, word];
    }),
  );
}

/**
 * The calls of a definition in its order, and what it says of the cloud.
 *
 * @param {string} file
 */
function callsOf(file) {
  const text = readFileSync(join(ROOT, 'proto', file), 'utf8');
  return [...text.matchAll(/((?:^ *\/\/.*\n)*) {2}rpc (\w+) ?\(/gm)].map(([, comment = '', call = '']) => {
    const words = comment.replaceAll(/\n *\/\/ ?/g, ' ');
    return { call, cloud: REMARKS.find(({ remark }) => remark.test(words))?.says ?? 'yes' };
  });
}

/** @param {string[][]} rows */
const table = ([head, ...rows]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `|${cells.map((cell) => ` ${cell} `).join('|')}|`).join('\n');

/** @param {string | undefined} word */
const outcome = (word) => (word === 'works' ? 'yes' : (word ?? 'not tested'));

/** @param {string} number */
const figure = (number) => number.replace(/\d+$/, (digits) => Number(digits).toLocaleString('en-US'));

function tables() {
  const [edubba, emulator] = [recordOf('api.txt'), recordOf('api-emulator.txt')];
  const calls = SERVICES.map(({ service, file, title }) => ({
    title,
    rows: callsOf(file).map(({ call, cloud }) => {
      const name = `call ${service}/${call}`;
      return [`\`${call}\``, cloud, outcome(edubba.get(name)), outcome(emulator.get(name))];
    }),
  }));
  const all = calls.flatMap(({ rows }) => rows);
  /** @param {number} column */
  const counts = (column) => {
    const words = all.map((row) => row[column] ?? '');
    const kinds = [...new Set(words)].map((word) => ({ word, count: words.filter((each) => each === word).length }));
    return kinds
      .sort((a, b) => b.count - a.count)
      .map(({ word, count }) => `${count} ${word}`)
      .join(', ');
  };
  const features = SECTIONS.map(({ section, title }) => {
    const names = [...edubba.keys()].filter((key) => key.startsWith(`${section} `));
    const rows = names.map((key) => [
      `\`${key.slice(section.length + 1)}\``,
      outcome(edubba.get(key)),
      outcome(emulator.get(key)),
    ]);
    return `### ${title}\n\n${table([['kind', 'Edubba', 'emulator'], ...rows])}`;
  });
  const limits = [...edubba.keys()]
    .filter((key) => key.startsWith('limit '))
    .map((key) => [
      key.slice('limit '.length),
      // those that take long are tested by default alone
      ...[edubba.get(key), edubba.get(`cloud-${key}`) ?? edubba.get(key), emulator.get(key)].map((word) =>
        figure(word ?? 'not tested'),
      ),
    ]);
  return [
    '### Calls',
    `Of the ${all.length} calls, by outcome:`,
    `- Edubba: ${counts(2)}\n- emulator: ${counts(3)}`,
    ...calls.flatMap(({ title, rows }) => [`#### ${title}`, table([['call', 'cloud', 'Edubba', 'emulator'], ...rows])]),
    ...features,
    '### Limits',
    table([['limit', 'Edubba', 'with `--limits cloud`', 'emulator'], ...limits]),
  ].join('\n\n');
}

/**
 * The page with its tables.
 *
 * @param {string} page
 */
export function withTables(page) {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the page has no lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${tables()}\n\n${page.slice(end)}`;
}
