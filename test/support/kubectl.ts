// Runs the real kubectl, independent of the user's ~/.kube.

import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand, type CommandOptions, type CommandResult } from './command.ts'
import { ensurePrograms } from './programs.ts'

export type KubectlOptions = Pick<CommandOptions, 'input' | 'expectCode' | 'timeoutMs' | 'signal'>

/**
 * Runs kubectl with a kubeconfig file. An object as `input` is sent as JSON (`-f -`). Rejects when it exits with
 * another code than expected (default 0).
 */
export async function kubectl(
  kubeconfig: string,
  args: readonly string[],
  { input, ...options }: Omit<KubectlOptions, 'input'> & { input?: string | object } = {},
): Promise<CommandResult> {
  const programs = await ensurePrograms(['kubectl'], { signal: options.signal })
  return runCommand(programs.kubectl, ['--kubeconfig', kubeconfig, ...args], {
    ...options,
    ...(input === undefined ? {} : { input: typeof input === 'string' ? input : JSON.stringify(input) }),
    env: kubectlEnvironment(kubeconfig),
  })
}

/** The environment for `startProcess` of a kubectl that keeps running (`logs -f`, `port-forward`, `get -w`). */
export function kubectlEnvironment(kubeconfig: string): Record<string, string | undefined> {
  return { KUBECONFIG: undefined, KUBECACHEDIR: discoveryCache(kubeconfig) }
}

let cacheRoot: string | undefined

/**
 * A cache per kubeconfig: kubectl caches discovery by address for hours, so a later server on the same port would get
 * this one's.
 */
function discoveryCache(kubeconfig: string): string {
  if (cacheRoot === undefined) {
    const root = mkdtempSync(join(tmpdir(), 'kcp-kubectl-'))
    process.once('exit', () => rmSync(root, { recursive: true, force: true }))
    cacheRoot = root
  }
  return join(cacheRoot, createHash('sha256').update(kubeconfig).digest('hex').slice(0, 16))
}
