// `kcp transfer` from the embedded store of `kcp start` to two replicas over a host's etcd, and back.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kubectl, runKcp, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { startReplicas, type ReplicaSet } from './replicas.ts'
import { createWidgets } from './widget-definition.ts'

describe('a logical cluster that moves to another store', function () {
  this.timeout(180_000)
  let embedded: KcpInstance
  let hosted: ReplicaSet
  let acme: Tenant
  let folder: string
  const uidOf = async (kubeconfig: string): Promise<string> =>
    (await kubectl(kubeconfig, ['get', 'widgets', 'one', '-o', 'jsonpath={.metadata.uid}'])).stdout

  before(async function () {
    this.timeout(300_000)
    folder = mkdtempSync(join(tmpdir(), 'kcp-transfer-stores-'))
    ;[embedded, hosted] = await Promise.all([startInstance(), startReplicas(2)])
    acme = await embedded.tenant('acme')
    await createWidgets(acme)
    for (let i = 0; i < 20; i++)
      await acme.http.request('POST', `${acme.base}/api/v1/namespaces/default/configmaps`, {
        body: { metadata: { name: `c-${i}` } },
      })
  })
  after(async () => {
    await Promise.all([embedded[Symbol.asyncDispose](), hosted[Symbol.asyncDispose]()])
    rmSync(folder, { recursive: true, force: true })
  })

  it('goes from SQLite to a host and is reached there, and at its old address', async () => {
    const uid = await uidOf(acme.kubeconfig)
    const { stdout } = await runKcp([
      'transfer',
      'acme',
      '--root-dir',
      embedded.rootDir,
      '--to',
      hosted.host.kubeconfig,
    ])
    expect(stdout).to.match(/"acme" has moved to https:/)
    for (const replica of hosted.replicas) {
      const there = await hosted.kubeconfig('acme', replica)
      expect(await uidOf(there)).to.equal(uid)
    }
    expect(await uidOf(acme.kubeconfig)).to.equal(uid)
    await acme.kubectl(['create', 'configmap', 'by-the-old-way'])
    const names = (await kubectl(hosted.host.kubeconfig, ['get', 'lc', 'acme', '-o', 'jsonpath={.status.conditions}']))
      .stdout
    expect(names).to.include('"reason":"Served"')
  })

  it('comes back with what was written meanwhile, after it was deleted here', async () => {
    await kubectl(embedded.admin.kubeconfig, ['delete', 'lc', 'acme'])
    const admin = join(embedded.rootDir, 'admin.kubeconfig')
    const { stdout } = await runKcp(['transfer', 'acme', '--host-kubeconfig', hosted.host.kubeconfig, '--to', admin])
    expect(stdout).to.match(/"acme" has moved to https:/)
    const file = join(folder, 'back.kubeconfig')
    writeFileSync(file, (await runKcp(['kubeconfig', 'acme', '--root-dir', embedded.rootDir])).stdout)
    const { stdout: names } = await kubectl(file, ['get', 'configmaps', '-o', 'name'])
    expect(names.trim().split('\n')).to.include.members(['configmap/by-the-old-way', 'configmap/c-19'])
    // The host passes requests on.
    const [replica] = hosted.replicas
    if (replica === undefined) throw new Error('there is no replica')
    const passedOn = async (): Promise<boolean> => {
      const { code } = await kubectl(
        await hosted.kubeconfig('acme', replica),
        ['create', 'configmap', 'over-the-host'],
        {
          expectCode: 'any',
        },
      )
      return code === 0
    }
    await waitFor(passedOn, { what: 'a write through the host', deadlineMs: 20_000, intervalMs: 200 })
    await kubectl(file, ['get', 'configmap', 'over-the-host'])
  })
})
