import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseS3Address } from './s3-address.ts';
import { element, elements } from './s3-errors.ts';

test('an address names bucket, prefix, region and endpoint', () => {
  const there = parseS3Address('s3://data.x/a/b/?endpoint=http://127.0.0.1:7070&region=eu-west-1');
  assert.deepEqual(
    [there.bucket, there.prefix, there.region, there.endpoint.host, there.root],
    ['data.x', 'a/b', 'eu-west-1', '127.0.0.1:7070', '/data.x'],
  );
  const aws = parseS3Address('s3://data', 'us-west-2');
  assert.deepEqual([aws.prefix, aws.endpoint.href, aws.root], ['', 'https://data.s3.us-west-2.amazonaws.com/', '']);
  const dotted = parseS3Address('s3://data.x/p');
  assert.deepEqual([dotted.endpoint.href, dotted.root], ['https://s3.us-east-1.amazonaws.com/', '/data.x']);
});

test('a wrong address is refused with the reason', () => {
  for (const [text, words] of [
    ['s3://', /a bucket has 3 to 63 characters/],
    ['http://data', /a bucket has/],
    ['s3://UPPER/x', /a bucket has/],
    ['s3://data/a//b', /invalid path/],
    ['s3://data/../x', /invalid path/],
    ['s3://data/x?regoin=a', /unknown parameter "regoin"/],
    ['s3://data/x?region=A_B', /a region has/],
    ['s3://data/x?endpoint=here', /"here" is not a URL/],
    ['s3://data/x?endpoint=ftp://here', /an endpoint is/],
    ['s3://data/x?endpoint=http://here/path', /an endpoint is/],
    ['s3://data/x?endpoint=http://a:b@here', /an endpoint is/],
  ] as const)
    assert.throws(
      () => parseS3Address(text),
      (error: Error) => {
        assert.match(error.message, words, text);
        return 'codeName' in error && error.codeName === 'INVALID_ARGUMENT';
      },
    );
});

test('elements of XML are found, with their characters', () => {
  const xml = '<L><Key>a&amp;b&#x41;&#66;&nbsp;</Key><Key/><Key>c</Key><Key>cut';
  assert.deepEqual(elements(xml, 'Key'), ['a&bAB&nbsp;', 'c']);
  assert.equal(element(xml, 'None'), undefined);
});
