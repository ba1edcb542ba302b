// Charts and manifests of well-known applications, in members with real pods: what their tenants apply runs, is
// reached, and goes. The lab has none of the images: one program plays all of them (test/programs/stand-in).
// docs/reference/applications.md has what ran; KCP_UPDATE_REFERENCE=1 writes it.
import { expect } from 'chai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHelm } from '#test/e2e/helm.ts'
import { createLogicalCluster, idOf, installWithoutHost } from '#test/e2e/installation.ts'
import { ensurePrograms, kubectl, needsNodes, startCluster } from '#test/support/index.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { referenceSection } from '#test/support/reference-section.ts'
import { applications, unusable } from './applications/catalogue.ts'
import { labImages } from './applications/lab-images.ts'
import { labVersion, programsOf } from './applications/lab-version.ts'
import { pageHeader, rowOf, unusableHeader, unusableRow } from './applications/page.ts'
import { readApplications, type Application } from './applications/read-applications.ts'
import { isRefused, isUnusable, runApplication, type Home } from './applications/run-application.ts'

/** Its provisioner is part of the member's controller manager. */
const storageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'default', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  provisioner: 'kubernetes.io/host-path',
}

describe('applications in members', function () {
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  const rows: string[] = []
  let read: readonly Application[] = []
  /** By what their pods may be. */
  let homes: Readonly<Record<'baseline' | 'privileged', Home>>

  before(async function () {
    await needsNodes(this)
    this.timeout(1_200_000) // the first run builds and downloads
    await ensurePrograms(['helm', 'stand-in'])
    const dir = await mkdtemp(join(tmpdir(), 'kcp-applications-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    read = await readApplications()
    const images = await labImages(programsOf(labVersion(read.flatMap(({ objects }) => objects))))
    const flags = { 'kube-controller-manager': ['--enable-hostpath-provisioner=true'] }
    const member = stack.use(await startCluster({ name: 'east', nodes: 1, flags }))
    await member.node?.importImages(images)
    await member.kubectl(['create', '-f', '-'], { input: storageClass })
    const installation = stack.use(await installWithoutHost({ east: member }))
    await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    const home = async (name: string, level: string): Promise<Home> => {
      await createLogicalCluster(installation, name, 'alice')
      const patch = JSON.stringify({ spec: { podSecurity: { enforce: level } } })
      await kubectl(installation.admin, ['patch', 'logicalclusters.kcp.dev', name, '--type=merge', '-p', patch])
      const id = await idOf(installation, name)
      const helm = stack.use(await createHelm('app'))
      return { kubeconfig: await installation.tenant(name, 'alice'), id, member, dir, helm }
    }
    homes = { baseline: await home('acme', 'baseline'), privileged: await home('umbrella', 'privileged') }
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  for (const [index, { title, refused, chart }] of applications.entries())
    it(`${title}${chart === undefined ? '' : ', by Helm,'} runs`, async () => {
      const app = read[index]!
      if (refused !== undefined) await isRefused(app, homes.baseline)
      const started = performance.now()
      const pods = await runApplication(app, homes[refused === undefined ? 'baseline' : 'privileged'])
      console.log(`      ${pods} pods, ${((performance.now() - started) / 1000).toFixed(1)} s`)
      rows.push(rowOf(app))
    })

  for (const source of unusable)
    it(`${source.title} of ${source.module} does not run`, async () => {
      const folder = (await moduleFolders()).get(source.module)!
      await isUnusable(source, folder, homes.baseline)
    })

  it('are those of docs/reference/applications.md', function () {
    if (rows.length < applications.length) this.skip() // some failed, or a part of them was asked for
    const lines = [...pageHeader, ...rows]
    expect(referenceSection('applications.md', 'applications', lines)).to.deep.equal(lines)
    const others = [...unusableHeader, ...unusable.map(unusableRow)]
    expect(referenceSection('applications.md', 'unusable', others)).to.deep.equal(others)
  })
})
