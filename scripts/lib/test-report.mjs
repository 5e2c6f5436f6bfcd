/**
 * Reporter for node:test: each failure with its source file, progress every minute, the slowest files, and the closing
 * line 'N passed, N failed, N skipped'. A file without a test is a failure, and so is a run without a test.
 *
 * `npm test` uses it. It works by itself, too:
 * node --import tsx --test --test-reporter ./scripts/lib/test-report.mjs FILE...
 */
import { relative, resolve } from 'node:path';
import { Transform } from 'node:stream';
import { closingLine, ROOT, secondsSince } from './repository.mjs';
import { withSourcePlaces } from './source-places.mjs';

const PROGRESS_MS = 60_000;
const SLOWEST_FILES = 8;
const WHOLE_FILE = '(the whole file)';

/**
 * The data of an event of node:test, as far as it is used here.
 *
 * @typedef {object} TestEvent
 * @property {string} name
 * @property {string} [file]
 * @property {number} nesting
 * @property {string | boolean} [skip]
 * @property {string | boolean} [todo]
 * @property {{ type?: string, duration_ms: number, error?: TestError }} details
 */

/** @typedef {Error & { cause?: Error, failureType?: string, exitCode?: number, signal?: string }} TestError */

/** @param {string | boolean | undefined} mark */
const isSet = (mark) => mark !== undefined && mark !== false;
/** @param {TestEvent} event */
const isSuite = ({ details }) => details?.type === 'suite';
/**
 * The event of a file itself: node:test reports it only if the file crashed or has no test.
 *
 * @param {TestEvent} event
 */
const isWholeFile = ({ file, name }) => file !== undefined && resolve(name) === file;
/**
 * The source of a file, compiled or not.
 *
 * @param {string | undefined} path
 */
const sourceOf = (path) =>
  path
    ? relative(ROOT, path)
        .replace(/^dist\//, '')
        .replace(/\.js$/, '.ts')
    : '';

/** @param {TestEvent} event */
function errorText({ details }) {
  const error = details?.error;
  if (error?.signal) return `    the process was ended by ${error.signal}`;
  if (error?.exitCode) return `    the process ended with status ${error.exitCode}`;
  const cause = error?.cause ?? error;
  return withSourcePlaces(String(cause?.stack ?? cause ?? 'failed')).replace(/^/gm, '    ');
}

/** @param {string} name */
const underWay = (name) => `    under way: ${name}`;

// biome-ignore lint/style/noDefaultExport: node:test takes a reporter by its default export
export default class TestReport extends Transform {
  #tally = { passed: 0, failed: 0, skipped: 0 };
  /** @type {string[]} */
  #failures = [];
  /** @type {(string | undefined)[]} */
  #withoutTests = [];
  /**
   * Seconds of the outermost tests, by source file.
   *
   * @type {Map<string, number>}
   */
  #seconds = new Map();
  /**
   * The tests that have begun and not ended, by file: named where the file ends before them.
   *
   * @type {Map<string | undefined, string[]>}
   */
  #underWay = new Map();
  #start = performance.now();
  #progress = setInterval(() => this.#line(this.#progressLine()), PROGRESS_MS).unref();
  #files;
  #byName;

  /**
   * `files`: how many run, for the lines of progress; unknown by default. `byName`: only tests of some names run, so a
   * file may have none.
   *
   * @param {{ files?: number, byName?: boolean }} [options]
   */
  constructor({ files, byName = process.execArgv.some((word) => word.startsWith('--test-name-pattern')) } = {}) {
    super({ writableObjectMode: true });
    this.#files = files;
    this.#byName = byName;
  }

  /**
   * @override
   * @param {{ type: string, data: TestEvent & { message: string } }} event
   * @param {string} _encoding
   * @param {() => void} done
   */
  _transform({ type, data }, _encoding, done) {
    if (type === 'test:pass') this.#onPass(data);
    else if (type === 'test:fail') this.#onFail(data);
    else if (type === 'test:dequeue') this.#begun(data.file).push(data.name);
    else if (type === 'test:complete') this.#onComplete(data);
    else if (type === 'test:stdout') this.push(data.message);
    else if (type === 'test:stderr') process.stderr.write(withSourcePlaces(data.message));
    done();
  }

  /**
   * @override
   * @param {() => void} done
   */
  _flush(done) {
    clearInterval(this.#progress);
    for (const path of this.#byName ? [] : this.#withoutTests) this.#fail(path, WHOLE_FILE, '    it reported no test');
    const { passed, failed } = this.#tally;
    if (passed + failed === 0) {
      this.#tally.failed++;
      this.#line('no test was found');
    }
    if (this.#failures.length > 1) this.#line(`\n${this.#failures.length} failures:\n${this.#failures.join('\n')}`);
    const slowest = [...this.#seconds].sort(([, a], [, b]) => b - a).slice(0, SLOWEST_FILES);
    this.#line(`slowest: ${slowest.map(([path, seconds]) => `${path} ${seconds.toFixed(0)} s`).join(', ')}`);
    this.#line(`${this.#files ?? this.#seconds.size} files in ${secondsSince(this.#start)}`);
    this.#line(closingLine(this.#tally));
    if (this.#tally.failed > 0) process.exitCode = 1;
    done();
  }

  /** @param {TestEvent} event */
  #onComplete({ file, name, nesting, details }) {
    if (!file) return;
    const begun = this.#begun(file);
    if (begun.includes(name)) begun.splice(begun.indexOf(name), 1);
    const path = sourceOf(file);
    const seconds = nesting === 0 ? details.duration_ms / 1000 : 0;
    this.#seconds.set(path, (this.#seconds.get(path) ?? 0) + seconds);
  }

  /** @param {TestEvent} event */
  #onPass(event) {
    if (isWholeFile(event)) return void this.#withoutTests.push(event.file);
    if (isSuite(event)) return;
    if (!isSet(event.skip) && !isSet(event.todo)) return void this.#tally.passed++;
    this.#tally.skipped++;
    if (typeof event.skip === 'string') this.#line(`SKIP ${sourceOf(event.file)} ${event.name}: ${event.skip}`);
  }

  /** @param {TestEvent} event */
  #onFail(event) {
    // a suite fails by its tests, which are reported themselves, unless it failed before or after them
    const ofParts = event.details?.error?.failureType === 'subtestsFailed';
    if (isSuite(event) && ofParts) return;
    if (isSet(event.todo)) return void this.#tally.skipped++;
    if (ofParts) this.#tally.failed++;
    else if (!isWholeFile(event)) this.#fail(event.file, event.name, errorText(event));
    else this.#fail(event.file, WHOLE_FILE, [errorText(event), ...this.#begun(event.file).map(underWay)].join('\n'));
  }

  /** @param {string | undefined} file */
  #begun(file) {
    const names = this.#underWay.get(file) ?? [];
    this.#underWay.set(file, names);
    return names;
  }

  /**
   * @param {string | undefined} path
   * @param {string} name
   * @param {string} text
   */
  #fail(path, name, text) {
    this.#tally.failed++;
    const line = `FAIL ${sourceOf(path)} ${name}`;
    this.#failures.push(line);
    this.#line(`${line}\n${text}`);
  }

  #progressLine() {
    const files = this.#files === undefined ? this.#seconds.size : `${this.#seconds.size} of ${this.#files}`;
    const { passed, failed } = this.#tally;
    return `${secondsSince(this.#start)}: results from ${files} files, ${passed} passed, ${failed} failed`;
  }

  /** @param {string} text */
  #line(text) {
    this.push(`${text}\n`);
  }
}
