// The real kubectl, apart from whatever the person running the tests has in ~/.kube.

import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand, type CommandOptions, type CommandResult } from './command.ts'
import { ensurePrograms } from './programs.ts'

export type KubectlOptions = Pick<CommandOptions, 'input' | 'expectCode' | 'timeoutMs' | 'signal'>

/**
 * Runs kubectl against the cluster of a kubeconfig file. An object as `input` is sent as JSON (`-f -`).
 * Rejects when it ends with another code than expected (0, unless `expectCode` says otherwise).
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

/** For `startProcess`: a kubectl that stays (`logs -f`, `port-forward`, `get -w`). */
export function kubectlEnvironment(kubeconfig: string): Record<string, string | undefined> {
  return { KUBECONFIG: undefined, KUBECACHEDIR: discoveryCache(kubeconfig) }
}

let cacheRoot: string | undefined

/** kubectl caches discovery by address for hours; a later server on the same port would get this one's answers. */
function discoveryCache(kubeconfig: string): string {
  if (cacheRoot === undefined) {
    const root = mkdtempSync(join(tmpdir(), 'kcp-kubectl-'))
    process.once('exit', () => rmSync(root, { recursive: true, force: true }))
    cacheRoot = root
  }
  return join(cacheRoot, createHash('sha256').update(kubeconfig).digest('hex').slice(0, 16))
}
