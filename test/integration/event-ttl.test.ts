// The --event-ttl flag.
import { expect } from 'chai'
import { runKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

describe('the lifetime of Events', function () {
  this.timeout(60_000)
  let instance: KcpInstance
  before(async () => {
    instance = await startInstance(['--event-ttl', '2s'])
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  it('ends as the flag says, without affecting other objects', async () => {
    const { kubectl } = await instance.tenant('acme')
    await kubectl(['create', 'configmap', 'stays'])
    const involvedObject = { apiVersion: 'v1', kind: 'ConfigMap', name: 'stays', namespace: 'default' }
    const metadata = { name: 'told', namespace: 'default' }
    await kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'v1', kind: 'Event', metadata, involvedObject, reason: 'Told', type: 'Normal' },
    })
    const names = async (): Promise<string> => (await kubectl(['get', 'events,configmaps', '-o', 'name'])).stdout
    expect(await names()).to.contain('event/told')
    await waitFor(async () => !(await names()).includes('event/told'), { what: 'its end', deadlineMs: 20_000 })
    expect(await names()).to.contain('configmap/stays')
  })

  for (const wrong of ['0s', 'soon', '-1h', '721h', '1.5h']) {
    it(`rejects the value ${wrong} with one clear line, and starts nothing`, async () => {
      const args = ['start', '--root-dir', '/nowhere/at/all', '--event-ttl', wrong]
      const { code, stderr } = await runKcp(args, { expectCode: 'any' })
      expect(code).to.equal(2)
      expect(stderr).to.contain("option '--event-ttl <duration>' argument").and.contain('at most 720h')
    })
  }
})
