// The directory for files that outlive one checkout: built programs, images, run records.

import { homedir } from 'node:os'
import { join } from 'node:path'

/** `$KCP_CACHE`, else `$XDG_CACHE_HOME/kcp`, else `~/.cache/kcp`. Never inside the checkout. */
export function cacheDir(): string {
  const { KCP_CACHE, XDG_CACHE_HOME } = process.env
  if (KCP_CACHE !== undefined && KCP_CACHE !== '') return KCP_CACHE
  const base = XDG_CACHE_HOME !== undefined && XDG_CACHE_HOME !== '' ? XDG_CACHE_HOME : join(homedir(), '.cache')
  return join(base, 'kcp')
}

/** The checkout that contains this file. */
export const repositoryRoot = join(import.meta.dirname, '..', '..')
