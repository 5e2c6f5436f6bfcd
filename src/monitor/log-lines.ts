/**
 * Log lines, as text or as JSON: one line each, whatever it contains. Values that callers choose (names of tables,
 * principals) can neither begin a line nor steer a terminal: characters that are not visible are written as escapes.
 */
import type { LogFields, LogLevel } from '../env/index.ts';

export type LogFormat = 'text' | 'json';

/** A line's level, or `access` for a line of the access log. */
export type LogKind = LogLevel | 'access';

/** Longer values are cut. Stacks may be longer. */
const MAX_VALUE_CHARACTERS = 1000;
const MAX_STACK_CHARACTERS = 10_000;

/** Control and formatting characters, line ends of Unicode, and halves of pairs. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The line, with its line end. `timeMicros`: since 1970. */
export function logLine(
  format: LogFormat,
  kind: LogKind,
  timeMicros: number,
  message: string,
  fields: LogFields = {},
): string {
  const time = timeText(timeMicros);
  return format === 'json' ? jsonLine(kind, time, message, fields) : textLine(kind, time, message, fields);
}

function timeText(timeMicros: number): string {
  // biome-ignore lint/style/noRestrictedGlobals: the time is given, no clock is read
  return new Date(timeMicros / 1000).toISOString();
}

/** `time level message name=value …`. A stack follows it, on lines of its own that begin with white space. */
function textLine(kind: LogKind, time: string, message: string, fields: LogFields): string {
  const { stack, ...rest } = fields;
  const facts = Object.entries(rest).map(
    ([name, value]) => ` ${name}=${typeof value === 'string' ? quoted(cut(value)) : value}`,
  );
  const trace =
    typeof stack === 'string' && stack !== ''
      ? cut(stack, MAX_STACK_CHARACTERS)
          .split('\n')
          .map((line) => `\n    ${visible(line.trim())}`)
      : [];
  return `${time} ${kind} ${visible(cut(message))}${facts.join('')}${trace.join('')}\n`;
}

function jsonLine(kind: LogKind, time: string, message: string, fields: LogFields): string {
  // the first three are the line's own: a field of the same name follows them under another name
  const line: Record<string, string | number | boolean> = {
    time,
    level: kind === 'access' ? 'info' : kind,
    message: cut(message),
  };
  if (kind === 'access') line['log'] = 'access';
  for (const [name, value] of Object.entries(fields)) {
    const key = Object.hasOwn(line, name) ? `${name}_` : name;
    line[key] =
      typeof value === 'string' ? cut(value, name === 'stack' ? MAX_STACK_CHARACTERS : MAX_VALUE_CHARACTERS) : value;
  }
  return `${escaped(JSON.stringify(line))}\n`;
}

function cut(text: string, most = MAX_VALUE_CHARACTERS): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

function quoted(value: string): string {
  return /^[\w./:@+-]+$/.test(value) ? value : escaped(JSON.stringify(value));
}

/** JSON.stringify escapes the control characters of ASCII alone. */
function escaped(json: string): string {
  return json.replace(INVISIBLE, escapeOf);
}

function visible(text: string): string {
  return text.replace(INVISIBLE, escapeOf);
}

function escapeOf(character: string): string {
  return Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('');
}
