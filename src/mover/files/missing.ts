import { isSystemError } from './libc.ts'

/** True if a file is not there, or something on the way to it is no folder any more. */
export function isMissing(error: unknown): boolean {
  return isSystemError(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'ESTALE')
}
