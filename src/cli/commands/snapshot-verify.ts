// `kcp snapshot verify SNAPSHOT`: whether a snapshot is whole and unchanged, and what is in it.
import { readWhole, SnapshotError, type SnapshotManifest } from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { columns, documentText } from './output.ts'
import { sizeText } from './snapshot-file.ts'
import { openSnapshot, snapshotObject, type PlaceFlags } from './snapshot-places.ts'

interface Flags extends PlaceFlags {
  readonly output: 'text' | 'json' | 'yaml'
}

/** Runs the command. */
export async function run(text: string, { output, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  try {
    const manifest = await readWhole(await openSnapshot(text, flags, signal))
    if (output !== 'text') {
      process.stdout.write(documentText(manifest, output))
      return
    }
    const { logicalCluster, takenAt, revision, objects, bytes, program, parts } = manifest
    const claims = parts.find(({ resource }) => resource === 'persistentvolumeclaims')?.objects ?? 0
    const about = (await snapshotObject(text, flags, signal))?.status?.conditions?.find(
      ({ type }) => type === 'VolumesIncluded',
    )
    process.stdout.write(
      columns([
        ['logical cluster', `${logicalCluster.name} (${logicalCluster.id})`],
        ['taken', `${takenAt} at revision ${revision}, by kcp ${program}`],
        ['objects', `${objects} of ${parts.length} resources, ${sizeText(bytes)}`],
        ...(claims === 0 ? [] : [['volumes', about?.message ?? volumesText(claims, manifest)]]),
      ]),
    )
    process.stdout.write(
      `\n${columns([['RESOURCE', 'OBJECTS', 'BYTES'], ...parts.map((part) => [part.resource, String(part.objects), String(part.bytes)])])}`,
    )
    console.error('it is whole: every checksum fits')
  } catch (error) {
    if (error instanceof SnapshotError) throw new ExitError(`"${text}": ${error.message}`, { cause: error })
    throw error
  }
}

function volumesText(claims: number, { volumes = [] }: SnapshotManifest): string {
  const kept = volumes.filter(({ state }) => state === 'Included').length
  const where = kept === 0 ? '' : `; the storage of member clusters kept ${kept} of them when it was taken`
  return `the data of ${claims} PersistentVolumeClaims are not in it${where}`
}
