// Differences of generated cases that are there on purpose, with the reason.
import type { KnownDifference } from './compare-cases.ts'

export const knownGeneratedDifferences: readonly KnownDifference[] = [
  {
    reason: 'a real server only logs why a JSON patch does not apply; here the answer names it as a cause',
    isThis: (told) =>
      /^ {2}real: .*due to an error in our request","reason":"Invalid","details":\{\}/m.test(told) &&
      /^ {2}ours: .*"causes":\[\{"message":"/m.test(told),
  },
  {
    reason: 'an error that shows a whole patched object has its members in the order they are stored in',
    isThis: (told) => told.split(' is invalid: patch: Invalid value: ').length > 2,
  },
  {
    reason: 'an empty list that is stored as null is owned by who wrote it as long as it is null',
    isThis: (told) =>
      /^writers of a (Cluster)?Role,/.test(told) && told.includes('f:rules') && told.split('"rules":null').length > 2,
  },
  {
    reason:
      'a null that was stored for a map is dropped by the next apply; a real server keeps it and refuses the object',
    isThis: (told) =>
      told.includes('spec.map in body must be of type object') && /^ {2}ours: .*"status":200/m.test(told),
  },
]
