// `kcp start` on a new directory, timed from the start of the command.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, kcpProgram, kubectl, runKcp, startKcp } from '#test/support/index.ts'

export interface KcpUnderTest extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  readonly adminKubeconfig: string
  /** Seconds from the command to the first answer to kubectl. */
  readonly startSeconds: number
  /** Ends it as a crash does: with SIGKILL. */
  kill(): Promise<void>
  /** Creates a logical cluster and returns the path of a kubeconfig for it. */
  tenantKubeconfig(name: string): Promise<string>
}

export interface KcpUnderTestOptions {
  readonly dir?: string
  readonly env?: Record<string, string>
  /** Further flags of `kcp start`. */
  readonly args?: readonly string[]
  /** `bin/kcp` of another checkout. Default: ours. */
  readonly program?: string
}

/**
 * Starts it, on the data in `dir` if given; that directory is kept afterwards. kubectl must have been run once before,
 * or its own first start is measured too.
 */
export async function startKcpUnderTest({
  dir: given,
  env = {},
  args = [],
  program = kcpProgram,
}: KcpUnderTestOptions = {}): Promise<KcpUnderTest> {
  const dir = given ?? mkdtempSync(join(tmpdir(), 'kcp-bench-'))
  const rootDir = join(dir, 'root')
  const adminKubeconfig = join(rootDir, 'admin.kubeconfig')
  const port = await freePort()
  rmSync(adminKubeconfig, { force: true })
  const began = performance.now()
  const kcp = await startKcp(['start', '--root-dir', rootDir, '--port', String(port), ...args], {
    name: 'kcp',
    command: program,
    env,
    ready: () => existsSync(adminKubeconfig),
  })
  await kubectl(adminKubeconfig, ['get', 'namespaces'])
  const startSeconds = (performance.now() - began) / 1000
  return {
    pid: kcp.pid,
    port,
    adminKubeconfig,
    startSeconds,
    async tenantKubeconfig(name) {
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
      await kubectl(adminKubeconfig, ['create', '-f', '-'], { input: object })
      await kubectl(adminKubeconfig, ['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=30s'])
      const file = join(dir, `${name}.kubeconfig`)
      writeFileSync(file, (await runKcp(['kubeconfig', name, '--root-dir', rootDir])).stdout, { mode: 0o600 })
      return file
    },
    async kill() {
      await kcp.kill()
    },
    async [Symbol.asyncDispose]() {
      await kcp.stop()
      if (given === undefined) rmSync(dir, { recursive: true, force: true })
    },
  }
}
