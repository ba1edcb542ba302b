// `kcp snapshot create NAME`: all objects of a logical cluster at one moment, in a file.
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createClient } from '#client/index.ts'
import type { SnapshotManifest } from '#snapshot/index.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { openSnapshot, readWhole, sizeText, snapshotNow, writeNewFile } from './snapshot-file.ts'

interface Flags extends InstallationFlags {
  /** `-`: standard output. */
  readonly output?: string
  readonly recipient: readonly string[]
}

/** Runs the command. */
export async function run(text: string, { output, recipient, ...flags }: Flags): Promise<void> {
  const name = nameOfLogicalCluster(text)
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await logicalClusterOf(installation, name, signal)
  await using transport = await openDirect(installation)
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  const began = Date.now()
  const bytes = await snapshotNow(client, recipient, signal)
  if (output === '-') {
    await pipeline(bytes, process.stdout, { signal })
    return
  }
  const file = output ?? `${name}-${stamp(began)}.kcp.tar.zst${recipient.length === 0 ? '' : '.age'}`
  await writeNewFile(file, bytes, signal)
  const { size } = await stat(file)
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  if (recipient.length > 0) {
    console.log(`${file}: ${sizeText(size)}, encrypted for ${recipient.length}, in ${seconds} s`)
    return
  }
  const manifest = await readWhole(await openSnapshot(file, {}))
  console.log(
    `${file}: ${manifest.objects} objects at revision ${manifest.revision}, ${sizeText(size)}, in ${seconds} s`,
  )
  const secrets = secretsOf(manifest)
  if (secrets > 0) console.error(`it has ${secrets} Secrets in plain text; --recipient age1... encrypts the file`)
}

function secretsOf({ parts }: SnapshotManifest): number {
  return parts.find(({ resource }) => resource === 'secrets')?.objects ?? 0
}

/** A time for file names, such as `20260102T030405Z`. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.[0-9]+/g, '')
}
