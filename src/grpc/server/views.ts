/** The authorized views that calls on data name in place of a table. */
import { invalidArgument } from '../../base/index.ts';
import { CallContext, type RequestContext } from '../../env/index.ts';
import type { AuthorizedView, KeptResource, RowService } from '../../service/index.ts';
import { AUTHORIZED_VIEW, idsOf } from '../convert/names.ts';
import type { RequestDecoder } from '../codec/request-decoder.ts';

export class Views {
  readonly #service: RowService;
  readonly #decoder: RequestDecoder;
  /** What was made of each state of a view. */
  readonly #made = new WeakMap<KeptResource, AuthorizedView>();

  constructor(service: RowService, decoder: RequestDecoder) {
    this.#service = service;
    this.#decoder = decoder;
  }

  /**
   * NOT_FOUND where there is none; INVALID_ARGUMENT for another name, and for a request that names a table too: what it
   * may read or change would be unclear.
   */
  async find(context: RequestContext, name: string, table: string): Promise<AuthorizedView> {
    idsOf(name, AUTHORIZED_VIEW, 'authorized_view_name');
    if (table !== '')
      throw invalidArgument('only one of table_name and authorized_view_name may be set', {
        field: 'authorized_view_name',
      });
    const { authorizedViews, resources } = this.#service;
    if (resources === undefined) throw invalidArgument('a call that was passed on names a table, not a view');
    // another door may have made it just now
    if (context instanceof CallContext) context.authorizedView = name;
    const kept = authorizedViews?.find(name) ?? (await resources.find(context, 'authorizedViews', name));
    const known = this.#made.get(kept);
    if (known !== undefined) return known;
    await this.#decoder.load();
    const { authorizedViewOf } = await import('../convert/authorized-view.ts');
    const view = authorizedViewOf(kept.name, kept.contents);
    this.#made.set(kept, view);
    return view;
  }
}
