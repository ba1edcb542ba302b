// What a pod that no member has yet answers: as a real server does of a pod that no node has.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

describe('a pod that is nowhere yet', () => {
  let kcp: KcpInstance
  let acme: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    await acme.kubectl(['run', 'web', '--image=nginx'])
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('has no logs, which is no error', async () => {
    expect(await acme.kubectl(['logs', 'web'])).to.deep.equal({ code: 0, stdout: '', stderr: '' })
    expect((await acme.kubectl(['logs', 'none'], { expectCode: 1 })).stderr).to.include('pods "none" not found')
  })

  for (const args of [
    ['exec', 'web', '--', 'ls'],
    ['attach', 'web'],
    ['cp', 'web:/a', '/tmp/a'],
  ])
    it(`takes no ${args[0]}`, async () => {
      const { stderr } = await acme.kubectl(args, { expectCode: 1 })
      expect(stderr).to.include('Error from server (BadRequest): pod web does not have a host assigned\n')
    })
})
