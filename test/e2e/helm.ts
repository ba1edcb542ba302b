// Runs the real Helm 3, independent of the user's configuration, in one namespace of a cluster.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensurePrograms, runCommand, type CommandResult } from '#test/support/index.ts'

export interface Helm extends AsyncDisposable {
  /** Rejects when helm exits with another code than 0. */
  run(kubeconfig: string, ...args: readonly string[]): Promise<CommandResult>
}

/** Helm with an empty configuration of its own, which is removed when it is disposed of. */
export async function createHelm(namespace: string): Promise<Helm> {
  const home = await mkdtemp(join(tmpdir(), 'kcp-helm-'))
  const { helm } = await ensurePrograms(['helm'])
  const env = { KUBECONFIG: undefined, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home }
  return {
    run: (kubeconfig, ...args) =>
      runCommand(helm, ['--kubeconfig', kubeconfig, '--namespace', namespace, ...args], { env, timeoutMs: 150_000 }),
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  }
}
