// The kubernetes package of Python, in an environment of its own in the cache: typed and dynamic client, watch, pages.
import { join } from 'node:path'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'
import { needsTools, repositoryRoot, runCommand } from '#test/support/index.ts'
import { compile, ensureClientProgram } from './client-program.ts'

const scenario = join(repositoryRoot, 'test', 'clients', 'python', 'client_scenario.py')

describe('the Python client in a logical cluster', function () {
  let kcp: KcpInstance | undefined
  let python: string
  before(async function () {
    await needsTools(this, [['python3', '-c', 'import venv, ensurepip']])
    this.timeout(10 * 60_000) // the first installation
    const isSource = (file: string): boolean => file === 'requirements.txt'
    const dir = await ensureClientProgram({ name: 'clients-python', folder: 'python', isSource, build })
    python = join(dir, 'bin', 'python')
    kcp = await startInstance()
  })
  after(() => kcp?.[Symbol.asyncDispose]())

  it('creates, reads, patches, watches, pages and deletes, typed and dynamic', async () => {
    const { kubeconfig } = await kcp!.tenant('python')
    await runCommand(python, [scenario, kubeconfig])
  })
})

/** An environment with the packages of requirements.txt. It cannot be moved: its programs contain its path. */
async function build(dir: string, source: string): Promise<void> {
  await runCommand('python3', ['-m', 'venv', dir])
  const requirements = join(source, 'requirements.txt')
  await compile(join(dir, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', '-r', requirements], { cwd: source })
}
