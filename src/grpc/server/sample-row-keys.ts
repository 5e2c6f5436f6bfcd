/** SampleRowKeys in terms of the service. */
import { type ByteString, toBytes } from '../../base/index.ts';
import { isEmptyRange, type RowRange } from '../../model/index.ts';
import type { Service } from '../../service/index.ts';
import { rowRangeOf } from '../convert/row-range.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import type { MethodTable } from './method-table.ts';
import { refuseAuthorizedView, refuseMaterializedView, withAppProfile } from './target.ts';

export function registerSampleRowKeys(methods: MethodTable, service: Service): void {
  methods.stream(Bigtable.method.sampleRowKeys, async (context, request, send) => {
    refuseAuthorizedView(request.authorizedViewName);
    const { materializedViewName: view } = request;
    if (view !== '') await refuseMaterializedView(service, context, view);
    const range = request.rowRange && rowRangeOf(request.rowRange);
    const { tableName, appProfileId } = request;
    const profiled = withAppProfile(context, service.appProfiles, 'read', tableName, appProfileId);
    const samples = await service.sampleRowKeys(profiled, tableName);
    for (const sample of range ? clipSamples(samples, range) : samples)
      await send({ rowKey: toBytes(sample.row), offsetBytes: BigInt(sample.offsetBytes) });
  });
}

type Sample = { readonly row: ByteString; readonly offsetBytes: number };

/**
 * Samples inside the range, then its end, also where it holds no row. Offsets count from the sample before the range's
 * start.
 */
function clipSamples(samples: readonly Sample[], range: RowRange): Sample[] {
  if (isEmptyRange(range)) return [{ row: range.end!, offsetBytes: 0 }];
  const isInside = (row: ByteString): boolean =>
    row !== '' && row > range.start && (range.end === undefined || row < range.end);
  const before = samples.filter((sample) => sample.row !== '' && sample.row <= range.start).at(-1)?.offsetBytes ?? 0;
  const after =
    samples.find((sample) => sample.row === '' || (range.end !== undefined && sample.row >= range.end))?.offsetBytes ??
    before;
  return [...samples.filter((sample) => isInside(sample.row)), { row: range.end ?? '', offsetBytes: after }].map(
    (sample) => ({
      row: sample.row,
      offsetBytes: sample.offsetBytes - before,
    }),
  );
}
