/** The authorized views of all tables, as this process knows them. */
import type { TableSchema } from '../model/index.ts';
import type { AuthorizedViewSource, KeptResource } from '../service/index.ts';
import { FollowedFiles, type FollowedFilesParts } from './followed-files.ts';
import { decodeResource, resourcePath } from './resource-file.ts';

const KIND = 'authorizedViews';

export interface ViewCacheParts extends FollowedFilesParts {
  /** The table of that name, as known now. */
  readonly schemaOf: (table: string) => TableSchema | undefined;
}

export class ViewCache implements AuthorizedViewSource {
  readonly #parts: ViewCacheParts;
  /** By full name of the view. */
  readonly #views: FollowedFiles<{ readonly kept: KeptResource; readonly owner: string }>;

  constructor(parts: ViewCacheParts) {
    this.#parts = parts;
    this.#views = new FollowedFiles(parts, resourcePath(KIND, ''), ({ path, contents: file, version }) => {
      const { name, contents, owner } = decodeResource(path, file);
      return { kept: { name, contents, version }, owner };
    });
  }

  start(): Promise<void> {
    return this.#views.start();
  }

  stop(): void {
    this.#views.stop();
  }

  readAgain(): Promise<void> {
    return this.#views.readAgain();
  }

  /** Reads the file of that path again if it is one of these. */
  changed(path: string): Promise<void> {
    return this.#views.changed(path);
  }

  find(name: string): KeptResource | undefined {
    const found = this.#views.get(name);
    if (found === undefined) return undefined;
    const table = name.slice(0, name.lastIndexOf(`/${KIND}/`));
    return this.#parts.schemaOf(table)?.id === found.owner ? found.kept : undefined;
  }
}
