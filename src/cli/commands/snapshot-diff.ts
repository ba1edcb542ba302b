// `kcp snapshot diff BEFORE AFTER`: which objects differ between two snapshots, or between one and now.
import { existsSync } from 'node:fs'
import { createClient } from '#client/index.ts'
import { contentOf, differences, keyOf, readWhole, snapshotPath, SnapshotError, type Content } from '#snapshot/index.ts'
import { ExitCode, ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { columns, documentText } from './output.ts'
import { isBucketUrl, openSnapshot } from './snapshot-places.ts'

interface Flags extends InstallationFlags {
  readonly identity?: string
  readonly output: 'table' | 'json' | 'yaml'
}

/** Runs the command. Exit code 1 if there are differences. */
export async function run(before: string, after: string, { identity, output, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  const read = async (text: string): Promise<Content> => {
    try {
      return existsSync(text) || isBucketUrl(text) || text.startsWith('lcs/')
        ? await content(await openSnapshot(text, { ...flags, ...(identity !== undefined && { identity }) }, signal))
        : await contentNow(text, flags, signal)
    } catch (error) {
      if (error instanceof SnapshotError) throw new ExitError(`"${text}": ${error.message}`, { cause: error })
      throw error
    }
  }
  const found = differences(await read(before), await read(after))
  if (output !== 'table') process.stdout.write(documentText(found, output))
  else if (found.length > 0)
    process.stdout.write(
      columns([
        ['CHANGE', 'RESOURCE', 'NAMESPACE', 'NAME', 'FIELDS'],
        ...found.map(({ change, resource, namespace, name, fields }) => [
          change,
          resource,
          namespace,
          name,
          fields.join(','),
        ]),
      ]),
    )
  if (found.length > 0) throw new ExitCode(1)
  if (output === 'table') console.error('they are the same')
}

async function contentNow(text: string, flags: InstallationFlags, signal: AbortSignal): Promise<Content> {
  const name = nameOfLogicalCluster(text)
  await using installation = await openInstallation(flags, signal)
  await logicalClusterOf(installation, name, signal)
  await using transport = await openDirect(installation)
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  return await content(await client.stream(snapshotPath, { signal }))
}

async function content(source: AsyncIterable<Uint8Array>): Promise<Content> {
  const objects = new Map<string, ReturnType<typeof contentOf>>()
  const manifest = await readWhole(source, (line) => {
    const one = contentOf(line)
    objects.set(keyOf(one.place), one)
  })
  return { manifest, objects }
}
