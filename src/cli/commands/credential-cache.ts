// Credentials that kubectl has got from `kcp credential`, kept in files of the person until shortly before they expire:
// an answer from a file takes a fifth of a second less than one from the installation.
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { InstallationFlags } from './flags.ts'

/** A certificate with this much left is not used. */
const marginMs = 5 * 60_000

export interface Credential {
  readonly certificate: string
  readonly key: string
  /** RFC 3339. */
  readonly expires: string
}

/** The kept credential, if it is valid for some minutes more. */
export async function keptCredential(
  cluster: string,
  flags: InstallationFlags,
  nowMs: number,
): Promise<Credential | undefined> {
  try {
    // eslint-disable-next-line no-restricted-properties -- a file of our own, without numbers
    const kept = JSON.parse(await readFile(fileOf(cluster, flags), 'utf8')) as Credential
    return Date.parse(kept.expires) - nowMs > marginMs ? kept : undefined
  } catch {
    // A file that is missing or damaged is written again.
    return undefined
  }
}

/** Keeps the credential in a file that only this person can read. */
export async function keepCredential(cluster: string, flags: InstallationFlags, credential: Credential): Promise<void> {
  const file = fileOf(cluster, flags)
  await mkdir(folder(), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${process.pid}`
  await writeFile(temporary, JSON.stringify(credential), { mode: 0o600 })
  await rename(temporary, file)
}

/** Deletes the kept credential: the logical cluster may be another one of the same name. */
export async function forgetCredential(cluster: string, flags: InstallationFlags): Promise<void> {
  await rm(fileOf(cluster, flags), { force: true })
}

function fileOf(cluster: string, { rootDir = '', hostKubeconfig = '' }: InstallationFlags): string {
  const hash = createHash('sha256').update(`${rootDir}\n${hostKubeconfig}\n${cluster}`).digest('hex')
  return join(folder(), `${hash.slice(0, 32)}.json`)
}

function folder(): string {
  return join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kcp', 'credentials')
}
