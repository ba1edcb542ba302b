// The kubernetes package of Python, in an environment of its own in the cache: typed and dynamic client, watch, pages.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startInstance, type KcpInstance } from '../integration/kcp-instance.ts'
import { cacheDir, repositoryRoot, runCommand } from '../support/index.ts'

const source = join(repositoryRoot, 'test', 'clients', 'python')

describe('the Python client in a logical cluster', function () {
  this.timeout(10 * 60_000) // the first installation
  let kcp: KcpInstance
  before(async () => {
    kcp = await startInstance()
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('creates, reads, patches, watches, pages and deletes, typed and dynamic', async () => {
    const python = await ensureEnvironment()
    const { kubeconfig } = await kcp.tenant('python')
    await runCommand(python, [join(source, 'client_scenario.py'), kubeconfig])
  })
})

/** The interpreter of an environment with what requirements.txt names, from the cache if it is there. */
async function ensureEnvironment(): Promise<string> {
  const requirements = join(source, 'requirements.txt')
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 16)
  const dir = join(cacheDir(), 'programs', `python-${hash}`)
  const python = join(dir, 'bin', 'python')
  const complete = join(dir, 'complete')
  if (existsSync(complete)) return python
  rmSync(dir, { recursive: true, force: true })
  await runCommand('python3', ['-m', 'venv', dir])
  await runCommand(python, ['-m', 'pip', 'install', '--quiet', '-r', requirements], { timeoutMs: 5 * 60_000 })
  writeFileSync(complete, '')
  return python
}
