/** True for the address of a store on S3; otherwise it is a directory. */
export function isBucket(address: string): boolean {
  return address.startsWith('s3://');
}
