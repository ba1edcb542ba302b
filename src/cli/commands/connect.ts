// `kcp connect NAME -- COMMAND`: runs a command, by default a shell, whose KUBECONFIG leads into one logical cluster.
// The file with the credentials is deleted when the command has ended.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExitCode, ExitError } from '#cli/process/exit-error.ts'
import { issueKubeconfig, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'

/** Lifetime of the certificate in days, whatever the command does with the certificate. */
const days = 1

/** Runs the command. Rejects with ExitCode if it ends with another code than 0. */
export async function run(text: string, words: readonly string[], flags: InstallationFlags): Promise<void> {
  const name = nameOfLogicalCluster(text)
  const [command = process.env['SHELL'] ?? 'sh', ...args] = words
  const kubeconfig = await kubeconfigOf(name, flags)
  const folder = await mkdtemp(join(tmpdir(), 'kcp-connect-'))
  // The terminal sends Ctrl-C to both processes: the command handles it, and this process waits for the command.
  const ignored = (): void => undefined
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, ignored)
  try {
    const file = join(folder, 'kubeconfig')
    await writeFile(file, kubeconfig, { mode: 0o600 })
    await ended(command, args, { ...process.env, KUBECONFIG: file, KCP_LOGICAL_CLUSTER: name })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function kubeconfigOf(name: ReturnType<typeof nameOfLogicalCluster>, flags: InstallationFlags): Promise<string> {
  const { signal } = new AbortController()
  await using installation = await openInstallation(flags, signal)
  return await issueKubeconfig(installation, name, days, signal)
}

async function ended(command: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(command, args, { stdio: 'inherit', env })
  // Only this process gets SIGTERM, and passes it on.
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  const [code, signal] = (await once(child, 'exit').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new ExitError(`there is no program "${command}"`)
    throw error
  })) as [number | null, NodeJS.Signals | null]
  // The status of a command that a signal ended, as a shell reports it.
  const status = code ?? 128 + (signal === null ? 0 : constants.signals[signal])
  if (status !== 0) throw new ExitCode(status)
}
