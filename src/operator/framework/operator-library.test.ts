import { spawnSync } from 'node:child_process'
import { expect } from 'chai'
import { operatorLibrary } from './operator-library.ts'

describe('the operator library', () => {
  it('is loaded without client-node, which its first use loads', function () {
    this.timeout(20_000)
    // A process of its own: here, somebody else may have loaded client-node.
    const script = `
      const { registerHooks } = await import('node:module')
      let loaded = false
      registerHooks({ load: (url, context, next) => ((loaded ||= url.includes('/client-node/dist/')), next(url, context)) })
      const { operatorLibrary } = await import('./operator-library.ts')
      const before = loaded
      class Ordinary extends operatorLibrary.default { async init() {} }
      await new Ordinary().start()
      console.log(JSON.stringify({ before, after: loaded }))`
    const env = { ...process.env, KUBECONFIG: '', HOME: '/nonexistent' }
    const options = { cwd: import.meta.dirname, env, encoding: 'utf8' } as const
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], options)
    expect(stdout, stderr).to.equal('{"before":false,"after":true}\n')
  })
  it('exports the classes that our controllers extend', () => {
    expect(operatorLibrary.default.prototype).to.respondTo('handleResourceFinalizer')
    expect(operatorLibrary.ResourceEventType).to.include({ Added: 'ADDED', Modified: 'MODIFIED', Deleted: 'DELETED' })
  })
})
