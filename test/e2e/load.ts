// Steady requests against one address from within a node, so that they pass through kube-proxy as a pod's requests do.
// Every request opens its own connection, unless connections are to be kept: one that is kept notices a move only at
// its end.
import { join } from 'node:path'
import { repositoryRoot, startProcess, type Cluster, type ManagedProcess } from '#test/support/index.ts'

export interface LoadResult {
  readonly sent: number
  readonly failed: number
  /** Sent twice, because the kept connection was closed by the server. */
  readonly repeated: number
  /** Number of answers by pod. */
  readonly answers: Readonly<Record<string, number>>
  readonly errors: readonly string[]
}

export interface Load {
  /** Ends the load and returns the result. */
  stop(): Promise<LoadResult>
}

let started = 0

export interface LoadOptions {
  /** Default 50. */
  readonly perSecond?: number
  readonly keepsConnections?: boolean
  /** A file with the addresses of the host in the URL; see load-generator.ts. */
  readonly zone?: string
}

/** Starts `perSecond` GETs of `url` per second in the network of this member's node. */
export async function startLoad(
  member: Cluster,
  url: string,
  { perSecond = 50, keepsConnections = false, zone }: LoadOptions = {},
): Promise<Load> {
  const { node } = member
  if (node === undefined) throw new Error(`${member.name} has no node`)
  const script = join(repositoryRoot, 'test/e2e/load-generator.ts')
  const generator: ManagedProcess = await startProcess({
    // Its log is found by this name.
    name: `load-${member.name}-${++started}`,
    command: node.enter[0] ?? '',
    args: [
      ...node.enter.slice(1),
      process.execPath,
      '--disable-warning=ExperimentalWarning',
      script,
      url,
      String(perSecond),
      keepsConnections ? 'kept' : 'fresh',
      ...(zone === undefined ? [] : [zone]),
    ],
    graceMs: 15_000,
  })
  return {
    async stop() {
      await generator.stop()
      const line = generator.log().trimEnd().split('\n').at(-1) ?? ''
      return JSON.parse(line) as LoadResult
    },
  }
}
