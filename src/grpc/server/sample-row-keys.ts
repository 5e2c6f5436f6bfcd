/** SampleRowKeys in terms of the service. */
import { toBytes } from '../../base/index.ts';
import { clipSamples, type Service } from '../../service/index.ts';
import { rowRangeOf } from '../convert/row-range.ts';
import { Bigtable } from '../generated/google/bigtable/v2/bigtable_pb.ts';
import type { MethodTable } from './method-table.ts';
import { refuseMaterializedView, withAppProfile } from './target.ts';
import type { Views } from './views.ts';

export function registerSampleRowKeys(methods: MethodTable, service: Service, views: Views): void {
  methods.stream(Bigtable.method.sampleRowKeys, async (context, request, send) => {
    const { materializedViewName: view } = request;
    if (view !== '') await refuseMaterializedView(service, context, view);
    const range = request.rowRange && rowRangeOf(request.rowRange);
    const { authorizedViewName, appProfileId } = request;
    const through =
      authorizedViewName === '' ? undefined : await views.find(context, authorizedViewName, request.tableName);
    const tableName = through?.table ?? request.tableName;
    const profiled = withAppProfile(context, service.appProfiles, 'read', tableName, appProfileId);
    const all = await service.sampleRowKeys(profiled, tableName);
    const samples = through?.samples(all, range) ?? (range ? clipSamples(all, range) : all);
    for (const sample of samples) await send({ rowKey: toBytes(sample.row), offsetBytes: BigInt(sample.offsetBytes) });
  });
}
