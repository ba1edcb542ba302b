// `kcp version`: the version of this program, and that of the installation if one is found.
import { programVersion } from '#telemetry/index.ts'
import { messageOf } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { directOf } from '#cli/across/direct.ts'
import type { InstallationFlags } from './flags.ts'
import { installationOf, openDirect, openInstallation } from './installation.ts'
import { documentText } from './output.ts'

interface Flags extends InstallationFlags {
  readonly output: 'text' | 'json' | 'yaml'
}

/** Runs the command. */
export async function run({ output, ...flags }: Flags): Promise<void> {
  const client = { version: programVersion, node: process.version }
  const server = await serverVersion(flags)
  if (output !== 'text') {
    process.stdout.write(documentText({ client, ...(server !== undefined && { server }) }, output))
    return
  }
  console.log(`kcp ${client.version} (Node ${client.node})`)
  if (server !== undefined)
    console.log('error' in server ? `installation: ${server.error}` : `installation: ${server.gitVersion}`)
}

async function serverVersion(
  flags: InstallationFlags,
): Promise<{ readonly gitVersion: string } | { readonly error: string } | undefined> {
  const found = await installationOf(flags).catch(() => undefined)
  if (found === undefined) return undefined
  try {
    const signal = AbortSignal.any([processSignal(), AbortSignal.timeout(10_000)])
    await using installation = await openInstallation(found, signal)
    await using transport = await openDirect(installation)
    const { client } = directOf(transport, signal)
    const { gitVersion } = (await client('root').raw('/version', { signal })) as { gitVersion: string }
    return { gitVersion }
  } catch (error) {
    return { error: messageOf(error) }
  }
}
