/** The settings file: TOML, a key a line, no tables. Reading it says where each key stands, so that complaints can. */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { invalidArgument } from '../../base/index.ts';

export interface SettingsFile {
  readonly path: string;
  readonly entries: readonly FileEntry[];
}

export interface FileEntry {
  readonly key: string;
  readonly value: unknown;
  /** FILE:LINE. */
  readonly where: string;
}

/** INVALID_ARGUMENT if it cannot be read or is not TOML in UTF-8. */
export async function readSettingsFile(path: string): Promise<SettingsFile> {
  const bytes = await readFile(path).catch((error: Error) => {
    throw invalidArgument(`cannot read the settings: ${error.message}`);
  });
  if (!isUtf8(bytes)) throw invalidArgument(`${path}: the settings are not UTF-8 text`);
  const text = bytes.toString('utf8');
  const document = await parseToml(path, text);
  const lines = text.split('\n');
  const entries = Object.entries(document).map(([key, value]) => {
    const line = lines.findIndex((one) => keyOfLine(one) === key) + 1;
    return { key, value, where: line === 0 ? path : `${path}:${line}` };
  });
  return { path, entries };
}

async function parseToml(path: string, text: string): Promise<Readonly<Record<string, unknown>>> {
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw invalidArgument(`${path}:${error.line}:${error.column}: ${error.message.split('\n', 1)[0]}`);
  }
}

/** The key, or its first part, at the beginning of a line; undefined if there is none. */
function keyOfLine(line: string): string | undefined {
  const [, quote, quoted, bare] = /^\s*\[*\s*(?:(["'])(.*?)\1|([\w-]+))/.exec(line) ?? [];
  return quote === undefined ? bare : quoted;
}
