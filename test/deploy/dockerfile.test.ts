/** The reader of Dockerfiles knows what it reads and refuses the rest. What ours says is in deploy.test.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ignoredBy, parseDockerfile } from './dockerfile.ts';

describe('the reader of Dockerfiles', () => {
  test('stages, steps, and what a container is run with', () => {
    const [build, last] = parseDockerfile(`
# a comment
FROM node:22-slim AS build
WORKDIR /build
COPY a b ./
RUN one && \\
  # a comment between
  two "$X"
ENV NAME=value

FROM node:22-slim
COPY --from=build /out /in
ENV OWN=1
USER node
VOLUME /data
EXPOSE 1 2
STOPSIGNAL SIGINT
HEALTHCHECK --interval=1s --timeout=3s --retries=2 CMD ["a", "b"]
ENTRYPOINT ["edubba"]
CMD ["serve", "--x"]
`);
    assert.deepEqual(build?.steps, [
      { kind: 'workdir', path: '/build' },
      { kind: 'copy', from: undefined, sources: ['a', 'b'], target: './' },
      { kind: 'run', command: 'one && two "$X"' },
      { kind: 'env', name: 'NAME', value: 'value' },
    ]);
    assert.equal(build?.name, 'build');
    assert.deepEqual(last?.steps, [
      { kind: 'copy', from: 'build', sources: ['/out'], target: '/in' },
      { kind: 'env', name: 'OWN', value: '1' },
    ]);
    assert.deepEqual(last?.image, {
      user: 'node',
      workdir: '/',
      environment: { OWN: '1' },
      volumes: ['/data'],
      ports: [1, 2],
      stopSignal: 'SIGINT',
      healthcheck: { command: ['a', 'b'], timeoutMs: 3000 },
      entrypoint: ['edubba'],
      command: ['serve', '--x'],
    });
  });

  for (const [text, message] of [
    ['RUN true', /line 1: RUN stands before FROM/],
    ['FROM a\nADD x y', /line 2: ADD is not known here/],
    ['FROM a\n\nrun true', /line 3: run is not known/],
    ['FROM a b', /FROM IMAGE \[AS NAME\]/],
    ['FROM a\nRUN ["x"]', /plain command/],
    ['FROM a\nRUN --mount=type=cache x', /plain command/],
    ['FROM a\nCOPY --chown=node a b', /COPY \[--from=STAGE\]/],
    ['FROM a\nCOPY a', /COPY \[--from=STAGE\]/],
    ['FROM a\nENV A=$B', /variables/],
    ['FROM a\nENV A B', /ENV NAME=VALUE/],
    ['FROM a\nWORKDIR x', /full path/],
    ['FROM a\nEXPOSE 80/udp', /numbers/],
    ['FROM a\nCMD serve', /as JSON/],
    ['FROM a\nCMD [1]', /as JSON/],
    ['FROM a\nENTRYPOINT {}', /as JSON/],
    ['FROM a\nHEALTHCHECK NONE', /HEALTHCHECK/],
    ['FROM a\nHEALTHCHECK CMD ["a"]', /--timeout/],
    ['FROM a\nRUN true \\', /continued by nothing/],
  ] as const) {
    test(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => parseDockerfile(text), message));
  }

  test('.dockerignore: whole folders, at the top or everywhere', () => {
    const isIgnored = ignoredBy('# comment\nnode_modules\n\nbench/x\n**/*.log\n/dist/\n');
    const paths = [
      'node_modules',
      'node_modules/a/b',
      'src/node_modules',
      'bench/x',
      'bench/xy',
      'a.log',
      'a/b/c.log',
      'a.logs',
      'dist/x',
      'src/dist',
    ];
    assert.deepEqual(paths.filter(isIgnored), [
      'node_modules',
      'node_modules/a/b',
      'bench/x',
      'a.log',
      'a/b/c.log',
      'dist/x',
    ]);
    for (const rule of ['!x', 'a?', '[ab]']) assert.throws(() => ignoredBy(rule), /is not read here/);
  });
});
