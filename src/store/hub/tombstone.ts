// The value that the store keeps where a logical cluster deleted an object of the base layer.

/** JSON that is never an object. */
export const tombstoneValue: Uint8Array = Buffer.from('null')

export function isTombstone(value: Uint8Array): boolean {
  return value.length === tombstoneValue.length && tombstoneValue.every((byte, i) => value[i] === byte)
}
