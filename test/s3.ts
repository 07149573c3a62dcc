/** A bucket of a real server of S3 that tests may write to, as the environment names it; undefined when it names none. */
export function testBucket() {
  const { S3_TEST_ENDPOINT: endpoint, S3_TEST_BUCKET: bucket = 'media' } = process.env
  if (endpoint === undefined) return undefined
  return {
    MEDIA_STORE: 's3',
    S3_ENDPOINT: endpoint,
    S3_REGION: process.env['S3_TEST_REGION'] ?? 'us-east-1',
    S3_BUCKET: bucket,
    S3_ACCESS_KEY_ID: process.env['S3_TEST_ACCESS_KEY_ID'] ?? '',
    S3_SECRET_ACCESS_KEY: process.env['S3_TEST_SECRET_ACCESS_KEY'] ?? '',
  } as const
}
