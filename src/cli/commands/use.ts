// `kcp use NAME`: makes a logical cluster the current context of kubectl. The context has no credentials of its own:
// kubectl asks `kcp credential` for a certificate of an hour.
import { existsSync, realpathSync } from 'node:fs'
import { isSea } from 'node:sea'
import { dirname, join, resolve } from 'node:path'
import { processSignal } from '#cli/process/process-signal.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import { forgetCredential } from './credential-cache.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { kcpContexts, kubeconfigPath, useContext, usePrevious } from './kubeconfig-file.ts'
import { columns } from './output.ts'

/** Runs the command. */
export async function run(text: string | undefined, flags: InstallationFlags): Promise<void> {
  const path = kubeconfigPath()
  if (text === undefined) return list(path)
  if (text === '-') {
    console.log(`switched to context "${await usePrevious(path)}"`)
    return
  }
  const name = nameOfLogicalCluster(text)
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await logicalClusterOf(installation, name, signal)
  const { directUrl: origin, pki, found } = installation
  const words = Object.entries(found).flatMap(([flag, value]) => [flagOf(flag), value as string])
  await useContext(path, {
    ...{ cluster: name, server: `${origin}/clusters/${name}`, ca: pki.servingCa, installation: found },
    credentials: [...ownCommand(), 'credential', name, ...words],
  })
  await forgetCredential(name, found)
  console.log(`switched to context "kcp-${name}" in ${path}; try:  kubectl get namespaces`)
}

async function list(path: string): Promise<void> {
  const contexts = await kcpContexts(path)
  if (contexts.length === 0) {
    console.error('no context is of kcp yet; the first one:  kcp use NAME')
    return
  }
  const rows = contexts.map(({ cluster, isCurrent, installation, namespace = '' }) => [
    ...[isCurrent ? '*' : '', cluster, namespace],
    installation.rootDir ?? installation.hostKubeconfig ?? '',
  ])
  process.stdout.write(columns([['CURRENT', 'NAME', 'NAMESPACE', 'INSTALLATION'], ...rows]))
}

function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/**
 * The command that starts this program again: the single file, `bin/kcp` of the checkout or the image, or Node with its
 * arguments.
 */
function ownCommand(): string[] {
  if (isSea()) return [process.execPath]
  const main = realpathSync(process.argv[1] ?? process.execPath)
  for (let folder = dirname(main); folder !== dirname(folder); folder = dirname(folder)) {
    const launcher = join(folder, 'bin', 'kcp')
    if (existsSync(launcher)) return [launcher]
  }
  return main === process.execPath ? [main] : [process.execPath, ...process.execArgv, resolve(main)]
}
