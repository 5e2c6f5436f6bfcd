/** Bugs that the simulator must find. sim/planted/README.md has the seeds that found them. */
import type { PlantedBug } from './bug.ts';
import { FILE_BUGS } from './files.ts';
import { KEPT_BUGS } from './kept.ts';
import { LOG_BUGS } from './logs.ts';
import { METADATA_BUGS } from './metadata.ts';
import { METADATA_SPLIT_BUGS } from './metadata-splits.ts';
import { RESOURCE_BUGS } from './resources.ts';
import { ROLE_BUGS } from './roles.ts';
import { SERVING_BUGS } from './serving.ts';
import { SORTED_LOG_BUGS } from './sorted-logs.ts';

export type { PlantedBug, TextChange } from './bug.ts';

export const PLANTED_BUGS: readonly PlantedBug[] = [
  ...SERVING_BUGS,
  ...METADATA_BUGS,
  ...METADATA_SPLIT_BUGS,
  ...LOG_BUGS,
  ...FILE_BUGS,
  ...ROLE_BUGS,
  ...SORTED_LOG_BUGS,
  ...KEPT_BUGS,
  ...RESOURCE_BUGS,
];
