// Requests to a pod that no member runs yet: answered as a real server does for an unscheduled pod.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

describe('a pod that is not placed yet', () => {
  let kcp: KcpInstance
  let acme: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    await acme.kubectl(['run', 'web', '--image=nginx'])
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('returns empty logs without an error', async () => {
    expect(await acme.kubectl(['logs', 'web'])).to.deep.equal({ code: 0, stdout: '', stderr: '' })
    expect((await acme.kubectl(['logs', 'none'], { expectCode: 1 })).stderr).to.include('pods "none" not found')
  })

  for (const args of [
    ['exec', 'web', '--', 'ls'],
    ['attach', 'web'],
    ['cp', 'web:/a', '/tmp/a'],
  ])
    it(`refuses ${args[0]}`, async () => {
      const { stderr } = await acme.kubectl(args, { expectCode: 1 })
      expect(stderr).to.include('Error from server (BadRequest): pod web does not have a host assigned\n')
    })
})
