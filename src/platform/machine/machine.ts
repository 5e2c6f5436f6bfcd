/** The machine's resources that this process may use. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

/** Memory that this process may use: the machine's, or the limit of the container it runs in. */
export function memoryBytes(): number {
  const machine = totalmem();
  // 0, or more than the machine's memory, where no limit is set
  const limit = process.constrainedMemory();
  return limit > 0 && limit < machine ? limit : machine;
}

/**
 * Files and sockets that this process may have open together; undefined where it has no such limit (Windows), or an
 * unknown one. On Linux read from /proc, elsewhere from Node's own report, which has it on every POSIX system but is
 * slow to make.
 */
export function descriptorLimit(): number | undefined {
  try {
    return (
      numberOf(/^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]) ?? reportedLimit()
    );
  } catch {
    return reportedLimit();
  }
}

function reportedLimit(): number | undefined {
  const report = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft?: number | string } };
  };
  return numberOf(report.userLimits?.open_files?.soft);
}

/** Undefined for "unlimited" too. */
function numberOf(limit: number | string | undefined): number | undefined {
  const value = Number(limit);
  return Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

/** The variables of the process' environment. */
export function environmentVariables(): Readonly<Record<string, string | undefined>> {
  return process.env;
}
