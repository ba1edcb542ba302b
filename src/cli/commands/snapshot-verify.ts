// `kcp snapshot verify FILE`: whether a snapshot is whole and unchanged, and what is in it.
import { stat } from 'node:fs/promises'
import { SnapshotError } from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { columns, documentText } from './output.ts'
import { openSnapshot, readWhole, sizeText } from './snapshot-file.ts'

interface Flags {
  readonly identity?: string
  readonly output: 'text' | 'json' | 'yaml'
}

/** Runs the command. */
export async function run(file: string, { output, ...flags }: Flags): Promise<void> {
  try {
    const manifest = await readWhole(await openSnapshot(file, flags))
    if (output !== 'text') {
      process.stdout.write(documentText(manifest, output))
      return
    }
    const { logicalCluster, takenAt, revision, objects, bytes, program, parts } = manifest
    const { size } = await stat(file)
    process.stdout.write(
      columns([
        ['logical cluster', `${logicalCluster.name} (${logicalCluster.id})`],
        ['taken', `${takenAt} at revision ${revision}, by kcp ${program}`],
        ['objects', `${objects} of ${parts.length} resources, ${sizeText(bytes)}; the file has ${sizeText(size)}`],
      ]),
    )
    process.stdout.write(
      `\n${columns([['RESOURCE', 'OBJECTS', 'BYTES'], ...parts.map((part) => [part.resource, String(part.objects), String(part.bytes)])])}`,
    )
    console.error('it is whole: every checksum fits')
  } catch (error) {
    if (error instanceof SnapshotError) throw new ExitError(`"${file}": ${error.message}`, { cause: error })
    throw error
  }
}
