/** `edubba version`, `--version`, `-V`: which Edubba this is, and on what it runs. */
import type { Command } from 'commander';
import { VERSION } from '../../base/index.ts';
import { jsonLine } from '../output/output.ts';
import type { Terminal } from '../output/terminal.ts';

export function addVersion(program: Command, terminal: Terminal, json: boolean): void {
  const { version: node, platform, arch } = process;
  const text = json
    ? jsonLine({ version: VERSION, node: node.slice(1), platform, arch })
    : `edubba ${VERSION} (Node ${node.slice(1)}, ${platform} ${arch})\n`;
  // commander ends the line
  program.version(text.trimEnd(), '-V, --version', 'print the version');
  program
    .command('version')
    .description('print the version of Edubba and of Node')
    .action(() => terminal.print(text));
}
