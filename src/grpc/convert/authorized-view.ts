/** google.bigtable.admin.v2.AuthorizedView to the view that data is read and changed through. */
import { fromBinary } from '@bufbuild/protobuf';
import { fromBytes, utf8 } from '../../base/index.ts';
import { AuthorizedView } from '../../service/index.ts';
import { AuthorizedViewSchema } from '../generated/google/bigtable/admin/v2/table_pb.ts';

/** `contents`: the message without its name. */
export function authorizedViewOf(name: string, contents: Uint8Array): AuthorizedView {
  const { authorizedView } = fromBinary(AuthorizedViewSchema, contents);
  const { rowPrefixes = [], familySubsets = {} } = authorizedView.value ?? {};
  return new AuthorizedView({
    name,
    table: name.slice(0, name.lastIndexOf('/authorizedViews/')),
    rowPrefixes: rowPrefixes.map(fromBytes),
    families: Object.entries(familySubsets).map(([family, { qualifiers, qualifierPrefixes }]) => ({
      family: utf8(family),
      qualifiers: qualifiers.map(fromBytes),
      qualifierPrefixes: qualifierPrefixes.map(fromBytes),
    })),
  });
}
