/**
 * Programs of others that test a wire: grpc's interop client, h2spec, and the certificates for all that speaks TLS
 * here.
 */
import { join } from 'node:path';
import { capture, ROOT } from './repository.mjs';
import { startServer } from './server.mjs';
import { goInstalled } from './tools.mjs';

const INTEROP_CLIENT = 'google.golang.org/grpc/interop/client@v1.83.2';
const H2SPEC = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible';
const CASE_MS = 60_000;
const H2SPEC_MS = 600_000;

/** @param {string} name */
const certificate = (name) => join(ROOT, 'test', 'certificates', name);
/** The authority that has signed the server's certificate, which is for localhost and 127.0.0.1. */
export const AUTHORITY = certificate('ca.pem');
export const SERVER_TLS = { key: certificate('server.key'), cert: certificate('server.pem') };

/** grpc/doc/interop-test-descriptions.md; those that the Go client has and that need no cloud's credentials. */
const CASES = [
  'empty_unary',
  'large_unary',
  'client_streaming',
  'server_streaming',
  'ping_pong',
  'empty_stream',
  'timeout_on_sleeping_server',
  'cancel_after_begin',
  'cancel_after_first_response',
  'custom_metadata',
  'status_code_and_message',
  'special_status_message',
  'unimplemented_method',
  'unimplemented_service',
];

/**
 * Runs grpc's cases against grpc.testing.TestService on our wire; calls `result` for each.
 *
 * @param {{ tls: boolean }} options
 * @param {(name: string, passed: boolean, text: string) => void} result
 */
export async function grpcCases({ tls }, result) {
  const client = await goInstalled(INTEROP_CLIENT, 'client');
  const service = join(ROOT, 'dist', 'test', 'interop', 'grpc', 'test-service.js');
  const server = await startServer(
    'test service',
    process.execPath,
    [service, ...(tls ? [SERVER_TLS.key, SERVER_TLS.cert] : [])],
    /listening on (\S+:\d+)/,
  );
  const security = tls
    ? ['--use_tls', '--use_test_ca', `--ca_file=${AUTHORITY}`, '--server_host_override=localhost']
    : [];
  try {
    for (const name of CASES) {
      const { status, err } = await capture(
        client,
        [
          '--server_host=127.0.0.1',
          `--server_port=${server.address.split(':')[1]}`,
          `--test_case=${name}`,
          ...security,
        ],
        { timeoutMs: CASE_MS },
      );
      result(name, status === 0, status === 0 ? '' : (err.trim().split('\n').at(-1) ?? ''));
    }
  } finally {
    await server.kill();
  }
}

/**
 * Runs h2spec on a server; returns { total, passed, skipped, failed, text }.
 *
 * @param {string} address
 * @param {{ tls: boolean }} options
 */
export async function h2spec(address, { tls }) {
  const path = await goInstalled(H2SPEC, 'h2spec');
  const [host, port] = address.split(':');
  const { out, err } = await capture(path, ['-h', host, '-p', port, ...(tls ? ['-t', '-k'] : [])], {
    timeoutMs: H2SPEC_MS,
  });
  const [, total, passed, skipped, failed] = (
    /(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed/.exec(out) ?? []
  ).map(Number);
  if (total === undefined) throw new Error(`h2spec came to no end: ${(err || out).slice(-1000)}`);
  return { total, passed, skipped, failed, text: out.slice(out.indexOf('Failures:')) };
}
