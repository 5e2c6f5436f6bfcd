/** google.bigtable.admin.v2.BigtableInstanceAdmin: hot tablets (docs/decisions/0104-hot-tablets.md). */
import { BigtableError, Code, invalidArgument, quote } from '../../base/index.ts';
import type { Clock, RequestContext } from '../../env/index.ts';
import { compareHeat, type HotTablet } from '../../model/index.ts';
import { lastDay, type Service } from '../../service/index.ts';
import { hotTabletMessage } from '../convert/hot-tablet.ts';
import { CLUSTER, idsOf } from '../convert/names.ts';
import { microsOf } from '../convert/time.ts';
import {
  BigtableInstanceAdmin,
  type ListHotTabletsRequest,
} from '../generated/google/bigtable/admin/v2/bigtable_instance_admin_pb.ts';
import type { MethodTable } from './method-table.ts';

const MAX_PAGE = 500;
/** Keys may have 64 KiB, and clients take messages of 4 MiB. */
const MAX_PAGE_KEY_BYTES = 1024 * 1024;

export function registerHotTablets(methods: MethodTable, service: Service, clock: Clock): void {
  methods.unary(BigtableInstanceAdmin.method.listHotTablets, async (context, request) =>
    list(service, context, request, clock.nowMicros()),
  );
}

async function list(
  { hotTablets }: Service,
  context: RequestContext,
  request: ListHotTabletsRequest,
  nowMicros: number,
) {
  const { parent } = request;
  idsOf(parent, CLUSTER, 'parent');
  if (hotTablets === undefined) throw new BigtableError(Code.FAILED_PRECONDITION, 'this door has no hot tablets');
  const page = hotPageOf(request, nowMicros);
  const all = await hotTablets.listHotTablets(context, parent, page);
  const { after } = page;
  const rest = after === undefined ? all : all.filter((each) => compareHeat(after, each) < 0);
  const shown = fitting(rest, page.size === 0 ? MAX_PAGE : Math.min(page.size, MAX_PAGE));
  const last = shown.at(-1);
  return {
    hotTablets: shown.map((each) => hotTabletMessage(parent, each)),
    nextPageToken: last === undefined || shown.length === rest.length ? '' : tokenOf({ ...page, after: last }),
  };
}

/** The first ones that one answer takes: at least one. */
function fitting(all: readonly HotTablet[], most: number): readonly HotTablet[] {
  let bytes = 0;
  const end = all.findIndex(({ range }, index) => {
    bytes += (range?.start.length ?? 0) + (range?.end?.length ?? 0);
    return index > 0 && (index >= most || bytes > MAX_PAGE_KEY_BYTES);
  });
  return end < 0 ? all : all.slice(0, end);
}

interface HotPage {
  readonly parent: string;
  readonly startMicros: number;
  readonly endMicros: number;
  /** 0 = as many as one page may have. */
  readonly size: number;
  /** The last one of the page before. */
  readonly after: Pick<HotTablet, 'cpuPercent' | 'id'> | undefined;
}

/** A page after the first is of the time and the size of the first: a call that says otherwise is INVALID_ARGUMENT. */
function hotPageOf(request: ListHotTabletsRequest, nowMicros: number): HotPage {
  const { parent, startTime, endTime, pageSize, pageToken } = request;
  if (pageSize < 0) throw invalidArgument(`page_size must not be negative, is ${pageSize}`, { field: 'page_size' });
  const span = lastDay(nowMicros);
  const given = {
    parent,
    startMicros: microsOf(startTime, 'start_time'),
    endMicros: microsOf(endTime, 'end_time'),
    size: pageSize === 0 ? undefined : pageSize,
  };
  if (pageToken === '') {
    const { startMicros = span.startMicros, endMicros = span.endMicros, size = 0 } = given;
    return { parent, startMicros, endMicros, size, after: undefined };
  }
  const page = parseToken(pageToken);
  for (const field of ['parent', 'startMicros', 'endMicros', 'size'] as const)
    if (given[field] !== undefined && given[field] !== page[field])
      throw invalidArgument('page_token is that of a call with other parameters', { field: 'page_token' });
  return page;
}

function tokenOf({ parent, startMicros, endMicros, size, after }: HotPage): string {
  const parts = [parent, startMicros, endMicros, size, after?.cpuPercent, after?.id];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

function parseToken(token: string): HotPage {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(token, 'base64url').toString());
  } catch {
    throw wrongToken(token);
  }
  if (!Array.isArray(parts) || parts.length !== 6) throw wrongToken(token);
  const [parent, startMicros, endMicros, size, cpuPercent, id]: unknown[] = parts;
  if (typeof parent !== 'string' || typeof id !== 'string') throw wrongToken(token);
  const count = (value: unknown): number => {
    if (typeof value !== 'number') throw wrongToken(token);
    return value;
  };
  return {
    parent,
    startMicros: count(startMicros),
    endMicros: count(endMicros),
    size: count(size),
    after: { cpuPercent: count(cpuPercent), id },
  };
}

function wrongToken(token: string) {
  return invalidArgument(`page_token ${quote(token, 200)} is not one of this list`, { field: 'page_token' });
}
