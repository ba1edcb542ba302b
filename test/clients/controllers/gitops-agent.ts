// The agent of Argo CD's gitops-engine (its cache, diff and sync) as a process beside a cluster.
import { expect } from 'chai'
import { ensurePrograms, freePort, startProcess, waitFor, type ManagedProcess } from '#test/support/index.ts'
import type { ClusterAccess } from './cluster-access.ts'

/** What one synchronization did, by `GROUP/KIND/NAMESPACE/NAME`. */
export type SyncResult = ReadonlyMap<string, string>

export interface GitopsAgent extends AsyncDisposable {
  readonly process: ManagedProcess
  /** Synchronizes what the repository contains now, and resolves with the result. Rejects when it fails. */
  sync(): Promise<SyncResult>
}

/** Starts the agent for the files of a repository; resolves after its first synchronization. */
export async function startGitopsAgent({ name, kubeconfig }: ClusterAccess, dir: string): Promise<GitopsAgent> {
  const programs = await ensurePrograms(['gitops-agent'])
  const port = await freePort()
  const process = await startProcess({
    name: `gitops-agent-${name}`,
    command: programs['gitops-agent'],
    args: [dir, '--kubeconfig', kubeconfig, '--path', 'manifests', '--port', String(port), '--resync-seconds', '3600'],
  })
  const ended = (): SyncResult[] => resultsIn(process.log())
  const untilResult = (count: number): Promise<SyncResult> =>
    waitFor(
      () => {
        if (/Failed to (synchronize|parse)/.test(process.log())) throw new Error(process.log().slice(-2000))
        return ended()[count]
      },
      { what: `synchronization ${count} of ${name}`, deadlineMs: 120_000, intervalMs: 200 },
    )
  await untilResult(0).catch(async (error: unknown) => {
    await process.stop()
    throw error
  })
  return {
    process,
    async sync() {
      const before = ended().length
      const { ok } = await fetch(`http://127.0.0.1:${port}/api/v1/sync`)
      expect(ok).to.equal(true)
      return untilResult(before)
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  }
}

/** The tables of results that the agent prints, each after a synchronization. */
function resultsIn(log: string): SyncResult[] {
  const results: Map<string, string>[] = []
  for (const line of log.split('\n')) {
    const row = /^(\S+\/\S*) {2,}(.*)$/.exec(line)
    if (/^RESOURCE\s+RESULT/.test(line)) results.push(new Map())
    else if (row !== null) results.at(-1)?.set(row[1]!, row[2]!.trim())
  }
  return results
}
