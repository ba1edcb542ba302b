// Gateway API's own tests of the CEL rules in its CustomResourceDefinitions, both channels, beside a real
// kube-apiserver and logical clusters; and cert-manager's definitions, whose rules are few.
import { expect } from 'chai'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { installCrds, type ClusterAccess } from '#test/clients/controllers/cluster-access.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { ensurePrograms, runCommand } from '#test/support/index.ts'
import { besideClusters } from './beside-clusters.ts'

for (const channel of ['standard', 'experimental'] as const)
  describe(`Gateway API's tests of its rules, ${channel} channel`, () => {
    besideClusters('gateway', (cluster) => live(cluster, channel))
  })

async function live(cluster: ClusterAccess, channel: 'standard' | 'experimental'): Promise<void> {
  const modules = await moduleFolders()
  const folders = [
    join(modules.get('sigs.k8s.io/gateway-api')!, 'config/crd', channel),
    join(modules.get('github.com/cert-manager/cert-manager')!, 'deploy/crds'),
  ]
  const isCrd = (file: string): boolean => file.endsWith('.yaml') && file !== 'kustomization.yaml'
  const files = folders.map((folder) =>
    readdirSync(folder)
      .filter(isCrd)
      .map((file) => join(folder, file)),
  )
  await installCrds(cluster, files.flat())
  const programs = await ensurePrograms([`gateway-api-${channel}`])
  const { code, stdout, stderr } = await runCommand(programs[`gateway-api-${channel}`], ['-test.v'], {
    env: { KUBECONFIG: cluster.kubeconfig },
    expectCode: 'any',
    timeoutMs: 20 * 60_000,
  })
  const failed = stdout.split('\n').filter((line) => /^\s*--- FAIL/.test(line))
  expect(code, [cluster.name, ...failed, stderr.slice(-2000)].join('\n')).to.equal(0)
  const passed = stdout.match(/^\s*--- PASS/gm)?.length ?? 0
  expect(passed).to.be.greaterThan(100)
}
