import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { kcpProgram, repositoryRoot, runKcp } from '#test/support/index.ts'

const installation = 'src/cli/commands/installation.ts'

describe('the built program', () => {
  /** Names of the modules that are loaded, files of packages by their path. */
  const loadedBy = async (args: readonly string[]): Promise<string[]> => {
    const count = `import { registerHooks } from 'node:module'
      registerHooks({ load: (url, context, next) => (console.error('loaded ' + url), next(url, context)) })`
    const preload = `--import=data:text/javascript,${encodeURIComponent(count)}`
    const { stderr } = await runKcp(args, { expectCode: 'any', env: { NODE_OPTIONS: preload } })
    return stderr.split('\n').flatMap((line) => (line.startsWith('loaded file:') ? [line.slice('loaded '.length)] : []))
  }

  it('loads no server to print its help or a kubeconfig', async () => {
    const help = await loadedBy(['--help'])
    expect(help.length).to.be.within(1, 20)
    const kubeconfig = await loadedBy(['kubeconfig', 'acme', '--root-dir', '/nonexistent'])
    expect(kubeconfig.filter((url) => url.includes('/dist/src/'))).to.have.length(2)
    for (const name of ['fastify', 'pino', 'ws', '@dot-i/k8s-operator'])
      expect(kubeconfig.some((url) => url.includes(`/node_modules/${name}/`))).to.equal(false, name)
  })

  it('loads `kcp start` from one file of ours besides the program', async () => {
    const start = await loadedBy(['start', '--root-dir', '/proc/nonexistent'])
    expect(start.filter((url) => url.includes('/dist/src/'))).to.have.length(2)
  })

  it('prints stacks with files and lines of the sources', async () => {
    const { stderr } = await runKcp(['kubeconfig', 'acme', '--root-dir', '/nonexistent'], {
      expectCode: 1,
      env: { KCP_DEBUG: '1' },
    })
    const lines = readFileSync(join(repositoryRoot, installation), 'utf8').split('\n')
    const thrown = lines.findIndex((line) => line.includes('is missing: start')) + 1
    expect(stderr, kcpProgram).to.include(`${installation}:${thrown}:`)
  })
})
