/**
 * docs/formats/internal-calls.proto from the messages of internal calls, src/protocol/codec/call-messages.ts. Without
 * an argument it compares, and ends with status 1 where the file is not what the messages say.
 *
 *   node --import tsx scripts/internal-calls.mjs [--write]
 */
import { internalCallsProto } from '../src/protocol/index.ts';
import { keepPage } from './lib/generated-page.mjs';

keepPage({
  page: 'docs/formats/internal-calls.proto',
  text: internalCallsProto(),
  source: 'src/protocol/codec/call-messages.ts',
  script: 'scripts/internal-calls.mjs',
});
