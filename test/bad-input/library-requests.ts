/**
 * Bad requests in the library's words. Each is made of the embedded library and, through the same library, of a server.
 * The table `t` has the families f and g, the aggregates `sum` and `low`, and timestamps of whole milliseconds.
 */
import { Code, type GcRule, type ReadModifyWriteRule, type RowFilter, RowMutation } from '../../src/embedded/index.ts';
import { all, type LibraryRequest, refused } from './library-request.ts';
import { MILLISECOND_REQUESTS } from './millisecond-requests.ts';
import { UNBOUNDED_REQUESTS } from './unbounded-requests.ts';

const { INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS } = Code;
const MIB = 1024 * 1024;

const row = (key: string | Uint8Array = 'row'): RowMutation => new RowMutation(key);
const cell = (key: string | Uint8Array = 'row'): RowMutation => row(key).set('f:q', 'v', 1000);
let tooLargeValue: Buffer | undefined;
/** Made once for all doors. */
const aValueTooLarge = (): Buffer => (tooLargeValue ??= Buffer.alloc(100 * MIB + 1));

const KEYS: LibraryRequest[] = [
  refused('an empty row key', INVALID_ARGUMENT, /row key must not be empty/, (t) => t.apply(cell(''))),
  refused(
    'a row key of 64 KiB and a byte',
    INVALID_ARGUMENT,
    /row key .* 65537 bytes; the limit is 65536/,
    (t) => t.apply(cell('k'.repeat(65537))),
    'default',
  ),
  refused(
    'a row key of 4 KiB and a byte',
    INVALID_ARGUMENT,
    /row key .* 4097 bytes; the limit is 4096/,
    (t) => t.apply(cell('k'.repeat(4097))),
    'cloud',
  ),
  refused(
    'an empty row key in a batch',
    INVALID_ARGUMENT,
    /mutation \d+ failed.*row key of entry 0 must not be empty/,
    (t) => t.applyAll([cell('')]),
  ),
  refused('a row key too long in a batch', INVALID_ARGUMENT, /entry 0.*70000 bytes/, (t) =>
    t.applyAll([cell('k'.repeat(70000)), cell('')]),
  ),
  refused('an increment of an empty row key', INVALID_ARGUMENT, /row key must not be empty/, (t) =>
    t.increment('', 'f:n'),
  ),
  refused('a check of an empty row key', INVALID_ARGUMENT, /row key must not be empty/, (t) =>
    t.checkAndMutate('', { column: 'f:q' }, { then: (r) => r.deleteRow() }),
  ),
  refused('a read of an empty row key', INVALID_ARGUMENT, /row key/, (t) => t.get('')),
  refused('a read of a row key too long', INVALID_ARGUMENT, /70000|70001/, (t) => t.get('k'.repeat(70000))),
  refused('a scan that starts above its end', INVALID_ARGUMENT, /start.*"b".*above.*"a"/, (t) =>
    all(t.scan({ start: 'b', end: 'a' })),
  ),
  refused('a deletion of rows that starts above its end', INVALID_ARGUMENT, /"b".* above .*"a"/, (t) =>
    t.deleteRows({ start: 'b', end: 'a' }),
  ),
];

const NAMES: LibraryRequest[] = [
  ...['', '../../etc', 'a b', 'tables/x', 'é', 'x'.repeat(51), 'a\0b'].map((id) =>
    refused(
      `a table named ${JSON.stringify(id.slice(0, 12))}`,
      INVALID_ARGUMENT,
      /table (id|name)|parent|table_id/,
      (_t, d) => d.createTable(`projects/local/instances/local/tables/${id}`),
    ),
  ),
  refused('a table in no instance', INVALID_ARGUMENT, /projects\/PROJECT|parent/, (_t, d) =>
    d.createTable('projects/p/tables/t'),
  ),
  refused('a table that is there', ALREADY_EXISTS, /table t /, (_t, d) => d.createTable('t')),
  ...['', 'a b', 'f:q', 'x'.repeat(65), 'a\0', 'ü'].map((family) =>
    refused(`a family named ${JSON.stringify(family.slice(0, 12))}`, INVALID_ARGUMENT, /family/, (_t, d) =>
      d.createTable('other', { families: { [family]: {} } }),
    ),
  ),
  ...['', 'a b', 'x'.repeat(65)].map((family) =>
    refused(`a new family named ${JSON.stringify(family.slice(0, 12))}`, INVALID_ARGUMENT, /family/, (t) =>
      t.createFamily(family),
    ),
  ),
  refused('a family that is there', ALREADY_EXISTS, /"f"/, (t) => t.createFamily('f')),
  refused('a family that is not there is dropped', NOT_FOUND, /"none"/, (t) => t.deleteFamily('none')),
  refused('the rule of a family that is not there', NOT_FOUND, /"none"/, (t) =>
    t.setGcRule('none', { kind: 'maxVersions', versions: 1 }),
  ),
  refused('a table that is not there is deleted', NOT_FOUND, /table none /, (_t, d) => d.deleteTable('none')),
  refused('the schema of no table', NOT_FOUND, /table none /, (_t, d) => d.table('none').schema()),
  refused('a write to no table', NOT_FOUND, /table none /, (_t, d) => d.table('none').apply(cell())),
  refused('a batch to no table', NOT_FOUND, /table none /, (_t, d) => d.table('none').applyAll([cell()])),
  refused('a read of no table', NOT_FOUND, /table none /, (_t, d) => all(d.table('none').scan())),
  refused('samples of no table', NOT_FOUND, /table none /, (_t, d) => d.table('none').sampleKeys()),
  refused('an increment in no table', NOT_FOUND, /table none /, (_t, d) => d.table('none').increment('r', 'f:n')),
  refused('a deletion of all rows of no table', NOT_FOUND, /table none /, (_t, d) => d.table('none').deleteAllRows()),
  ...['none', 'constructor', '__proto__', 'toString'].flatMap((family) => [
    refused(`a write to the family ${family}`, NOT_FOUND, new RegExp(`"${family}"`), (t) =>
      t.apply(cell('refused').set(`${family}:q`, 'v', 1000)),
    ),
    refused(`a deletion of the family ${family}`, NOT_FOUND, new RegExp(`"${family}"`), (t) =>
      t.apply(cell('refused').deleteFamily(family)),
    ),
    refused(`a deletion in the family ${family}`, NOT_FOUND, new RegExp(`"${family}"`), (t) =>
      t.apply(cell('refused').delete(`${family}:q`)),
    ),
    refused(`an increment in the family ${family}`, NOT_FOUND, new RegExp(`"${family}"`), (t) =>
      t.increment('refused', `${family}:n`),
    ),
    refused(`a check that would write to the family ${family}`, NOT_FOUND, new RegExp(`"${family}"`), (t) =>
      t.checkAndMutate(
        'refused',
        { filter: { kind: 'passAll' } },
        { then: (r) => r.set(`${family}:q`, 'v', 1000), otherwise: (r) => r.set('f:q', 'v', 1000) },
      ),
    ),
  ]),
  refused('a write to an ill-named family', INVALID_ARGUMENT, /"a b"/, (t) =>
    t.apply(cell('refused').set('a b:q', 'v', 1000)),
  ),
  refused('one entry of a batch to an unknown family', NOT_FOUND, /mutation \d+ failed.*"none"/, (t) =>
    t.applyAll([row('refused').set('none:q', 'v', 1000)]),
  ),
];

const CELLS: LibraryRequest[] = [
  refused('a qualifier of 16 KiB and a byte', INVALID_ARGUMENT, /qualifier .* 16385 bytes; the limit is 16384/, (t) =>
    t.apply(cell('refused').set(`f:${'q'.repeat(16385)}`, 'v', 1000)),
  ),
  refused('a deletion with a qualifier too long', INVALID_ARGUMENT, /qualifier .* 16385 bytes/, (t) =>
    t.apply(cell('refused').delete(`f:${'q'.repeat(16385)}`)),
  ),
  refused('a value of 100 MiB and a byte', INVALID_ARGUMENT, /value has 104857601 bytes; the limit is 104857600/, (t) =>
    t.apply(row('refused').set('f:q', aValueTooLarge(), 1000)),
  ),
  refused('no mutation', INVALID_ARGUMENT, /at least one mutation/, (t) => t.apply(row('refused'))),
  refused('no mutation in one entry of a batch', INVALID_ARGUMENT, /entry 0 .* no mutation/, (t) =>
    t.applyAll([row('refused')]),
  ),
  refused('100,001 mutations of a row', INVALID_ARGUMENT, /100000|100,000/, (t) => {
    const many = row('refused');
    for (let i = 0; i <= 100_000; i++) many.deleteFamily('f');
    return t.apply(many);
  }),
  refused('100,001 mutations of a row in a batch', INVALID_ARGUMENT, /100000|100,000/, (t) => {
    const many = row('refused');
    for (let i = 0; i <= 100_000; i++) many.deleteFamily('f');
    return t.applyAll([many, cell('refused 2')]);
  }),
  refused('a check without mutations', INVALID_ARGUMENT, /true or false mutations|mutations/, (t) =>
    t.checkAndMutate('refused', { column: 'f:q' }, {}),
  ),
  refused('a timestamp between two milliseconds', INVALID_ARGUMENT, /granularity.*1001/i, (t) =>
    t.apply(cell('refused').set('f:p', 'v', 1001)),
  ),
  refused('a timestamp of the greatest int64', INVALID_ARGUMENT, /9223372036854775807/, (t) =>
    t.apply(cell('refused').set('f:p', 'v', 2n ** 63n - 1n)),
  ),
  refused('a timestamp above int64', INVALID_ARGUMENT, /timestamp/, async (t) =>
    t.apply(cell('refused').set('f:p', 'v', 2n ** 63n)),
  ),
  refused('a timestamp that is no whole number', INVALID_ARGUMENT, /timestamp.*1\.5/, async (t) =>
    t.apply(cell('refused').set('f:p', 'v', 1.5)),
  ),
  refused(
    'a timestamp below 0',
    INVALID_ARGUMENT,
    /-2000.* below 0/,
    (t) => t.apply(cell('refused').set('f:p', 'v', -2000)),
    'cloud',
  ),
  refused(
    'a deletion from below 0',
    INVALID_ARGUMENT,
    /-2000.* below 0/,
    (t) => t.apply(cell('refused').delete('f:q', { since: -2000 })),
    'cloud',
  ),
  refused('a deletion of times between two milliseconds', INVALID_ARGUMENT, /1500/, (t) =>
    t.apply(cell('refused').delete('f:q', { since: 1500, until: 3000 })),
  ),
  refused('a deletion of times that end before they start', INVALID_ARGUMENT, /3000.*2000/, (t) =>
    t.apply(cell('refused').delete('f:q', { since: 3000, until: 2000 })),
  ),
  refused('a cell set in an aggregate', INVALID_ARGUMENT, /"sum".* aggregates/, (t) =>
    t.apply(cell('refused').set('sum:q', 'v', 1000)),
  ),
  refused('an addition to a plain family', INVALID_ARGUMENT, /"f".* no aggregates/, (t) =>
    t.apply(cell('refused').add('f:q', 1)),
  ),
  refused('an increment in an aggregate', INVALID_ARGUMENT, /"sum".* aggregates/, (t) =>
    t.increment('refused', 'sum:q'),
  ),
  refused('an aggregate at a time between two milliseconds', INVALID_ARGUMENT, /1001/, (t) =>
    t.apply(cell('refused').add('sum:q', 1, 1001)),
  ),
  refused('an input above int64', INVALID_ARGUMENT, /int64/, async (t) =>
    t.apply(cell('refused').add('sum:q', 2n ** 63n)),
  ),
];

const increment = (family: string, qualifier = 'q'): ReadModifyWriteRule => ({
  family,
  qualifier,
  change: { kind: 'increment', amount: 1 },
});
const RULES: LibraryRequest[] = [
  refused('a read-modify-write without rules', INVALID_ARGUMENT, /at least one rule/, (t) =>
    t.readModifyWrite('refused', []),
  ),
  refused('a read-modify-write of a good and an unknown family', NOT_FOUND, /"none"/, (t) =>
    t.readModifyWrite('refused', [increment('f'), increment('none')]),
  ),
  refused('a read-modify-write of a qualifier too long', INVALID_ARGUMENT, /qualifier/, (t) =>
    t.readModifyWrite('refused', [increment('f', 'q'.repeat(16385))]),
  ),
  refused('an increment of text', Code.FAILED_PRECONDITION, /8 bytes|8-byte|integer/, (t) =>
    t.increment('kept', 'f:text'),
  ),
  refused('an increment of text after an append', Code.FAILED_PRECONDITION, /8 bytes|8-byte|integer/, (t) =>
    t.readModifyWrite('kept', [
      { family: 'g', qualifier: 'new', change: { kind: 'append', suffix: Buffer.from('x') } },
      increment('f', 'text'),
    ]),
  ),
];

const gc = (name: string, says: RegExp, gcRule: GcRule): LibraryRequest[] => [
  refused(`a rule of ${name}`, INVALID_ARGUMENT, says, (t) => t.setGcRule('f', gcRule)),
  refused(`a new family with a rule of ${name}`, INVALID_ARGUMENT, says, (t) => t.createFamily('new', { gcRule })),
  refused(`a new table with a rule of ${name}`, INVALID_ARGUMENT, says, (_t, d) =>
    d.createTable('other', { families: { f: { gcRule } } }),
  ),
];
const nested = (depth: number): GcRule =>
  depth === 0 ? { kind: 'maxVersions', versions: 1 } : { kind: 'union', rules: [nested(depth - 1)] };
const SCHEMAS: LibraryRequest[] = [
  ...gc('0 versions', /1 to 2147483647 versions, not 0/, { kind: 'maxVersions', versions: 0 }),
  ...gc('-1 versions', /versions, not -1/, { kind: 'maxVersions', versions: -1 }),
  ...gc('no time at all', /millisecond.* 0 micro/, { kind: 'maxAge', ageMicros: 0 }),
  ...gc('less than a millisecond', /millisecond.* 999 micro/, { kind: 'maxAge', ageMicros: 999 }),
  ...gc('a negative age', /-1000000/, { kind: 'maxAge', ageMicros: -1e6 }),
  ...gc('a hundred ages', /500/, {
    kind: 'union',
    rules: Array.from({ length: 100 }, (_, i) => ({ kind: 'maxAge' as const, ageMicros: (i + 1) * 1e6 })),
  }),
  ...gc('rules nested 300 deep', /500|recursion depth/, nested(300)),
  ...gc('no versions inside others', /versions, not 0/, {
    kind: 'intersection',
    rules: [
      { kind: 'maxAge', ageMicros: 1e6 },
      { kind: 'maxVersions', versions: 0 },
    ],
  }),
  refused('a split at the empty row', INVALID_ARGUMENT, /split.* must not be empty/, (_t, d) =>
    d.createTable('other', { splits: ['a', ''] }),
  ),
  refused('a split at a row too long', INVALID_ARGUMENT, /split.*70000 bytes/, (_t, d) =>
    d.createTable('other', { splits: ['k'.repeat(70000)] }),
  ),
];

const filtered = (name: string, says: RegExp, filter: RowFilter): LibraryRequest[] => [
  refused(`a read through ${name}`, INVALID_ARGUMENT, says, (t) => all(t.scan({ versions: 'all', filter }))),
  refused(`a check through ${name}`, INVALID_ARGUMENT, says, (t) =>
    t.checkAndMutate(
      'refused',
      { filter },
      { then: (r) => r.set('f:q', 'v', 1000), otherwise: (r) => r.set('f:q', 'v', 1000) },
    ),
  ),
];
const deep = (depth: number): RowFilter =>
  depth === 0 ? { kind: 'passAll' } : { kind: 'chain', filters: [{ kind: 'passAll' }, deep(depth - 1)] };
const regex = (expression: string): RowFilter => ({ kind: 'valueRegex', regex: expression });
const FILTERS: LibraryRequest[] = [
  ...filtered('an unbalanced expression', /value_regex_filter.*\(a/, regex('(a')),
  ...filtered('an expression with an unbalanced bracket', /missing|bracket|\[/, regex('[a')),
  ...filtered('an expression with nothing to repeat', /\*a/, regex('*a')),
  ...filtered('a repetition above the limit', /1001|repeat|size/, regex('(?:ab){1001}')),
  ...filtered('repetitions of repetitions', /large|repeat|size/, regex('((a{1000}){1000}){1000}')),
  ...filtered('an expression with a reference back', /\\1/, regex('(a)\\1')),
  ...filtered('an expression that looks ahead', /\(\?=/, regex('(?=a)b')),
  ...filtered('an expression too large', /too large|limit/, regex('[a-y]{900}'.repeat(80))),
  ...filtered('a family expression with a colon', /family_name_regex_filter.*":"/, {
    kind: 'familyNameRegex',
    regex: 'f:q',
  }),
  ...filtered('an empty row key expression', /row_key_regex_filter must not be empty/, {
    kind: 'rowKeyRegex',
    regex: '',
  }),
  ...filtered('filters nested 22 deep', /more than 20 deep/, deep(22)),
  ...filtered('an empty chain', /chain: must contain at least two filters, not 0/, { kind: 'chain', filters: [] }),
  ...filtered('a chain of one', /chain: must contain at least two filters, not 1/, {
    kind: 'chain',
    filters: [{ kind: 'passAll' }],
  }),
  ...filtered('an empty interleave', /interleave: must contain at least two filters, not 0/, {
    kind: 'interleave',
    filters: [],
  }),
  ...filtered('a sink inside a condition', /sink cannot be used within a condition/, {
    kind: 'condition',
    predicate: { kind: 'passAll' },
    whenTrue: { kind: 'sink' },
  }),
  ...filtered('a sink deep inside a condition', /sink cannot be used within a condition/, {
    kind: 'condition',
    predicate: { kind: 'passAll' },
    whenFalse: {
      kind: 'interleave',
      filters: [{ kind: 'passAll' }, { kind: 'chain', filters: [{ kind: 'passAll' }, { kind: 'sink' }] }],
    },
  }),
  ...[0, 1, -0.5, 1.5, Number.NaN, Number.POSITIVE_INFINITY].flatMap((probability) =>
    filtered(`a sample of ${probability}`, /row_sample_filter must be above 0 and below 1/, {
      kind: 'rowSample',
      probability,
    }),
  ),
  ...[0, -1].flatMap((cells) =>
    filtered(`a limit of ${cells} cells a row`, /cells_per_row_limit_filter .* at least 1/, {
      kind: 'cellsPerRowLimit',
      cells,
    }),
  ),
  ...[0, -1].flatMap((cells) =>
    filtered(`a limit of ${cells} cells a column`, /cells_per_column_limit_filter .* at least 1/, {
      kind: 'cellsPerColumnLimit',
      cells,
    }),
  ),
  ...filtered('an offset of -1 cells', /cells_per_row_offset_filter .* at least 0/, {
    kind: 'cellsPerRowOffset',
    cells: -1,
  }),
  ...filtered('columns of no family', /column_range_filter must name a family/, { kind: 'columnRange', family: '' }),
  ...filtered('a bitmask without a mask', /value_bitmask_filter/, { kind: 'valueBitmask', mask: '' }),
  ...['', 'Upper', 'x'.repeat(16), 'a b'].flatMap((label) =>
    filtered(`the label ${JSON.stringify(label)}`, /apply_label_transformer/, { kind: 'applyLabel', label }),
  ),
  ...filtered('two labels in a chain', /only one filter of a chain/, {
    kind: 'chain',
    filters: [
      { kind: 'applyLabel', label: 'a' },
      { kind: 'applyLabel', label: 'b' },
    ],
  }),
  refused('a limit of 0 rows', INVALID_ARGUMENT, /limit.* 0/, (t) => all(t.scan({ limit: 0 }))),
  refused('a limit of -1 rows', INVALID_ARGUMENT, /limit.* -1/, (t) => all(t.scan({ limit: -1 }))),
  refused('0 versions', INVALID_ARGUMENT, /versions.* 0/, (t) => all(t.scan({ versions: 0 }))),
  refused('times that end before they start', INVALID_ARGUMENT, /since \(3000\).* until \(2000\)/, (t) =>
    all(t.scan({ since: 3000, until: 2000 })),
  ),
];

export const LIBRARY_REQUESTS: readonly LibraryRequest[] = [
  ...KEYS,
  ...NAMES,
  ...CELLS,
  ...RULES,
  ...SCHEMAS,
  ...FILTERS,
  ...UNBOUNDED_REQUESTS,
  ...MILLISECOND_REQUESTS,
];
