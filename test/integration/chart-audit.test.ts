// What the chart makes of the values of the audit log.
import { expect } from 'chai'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parsePolicy } from '#virtualapi/audit/index.ts'
import { ensurePrograms, repositoryRoot, runCommand, runKcp } from '#test/support/index.ts'

interface Container {
  readonly args?: string[]
  readonly env?: { readonly name: string; readonly valueFrom?: unknown }[]
  readonly volumeMounts?: { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[]
}
type Rendered = KubeObject & {
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: {
    readonly template?: { readonly spec: { readonly containers: Container[]; readonly volumes?: { name: string }[] } }
  }
}

const policy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'None', verbs: ['get'] }, { level: 'RequestResponse' }],
}

describe('the audit log with the chart', function () {
  this.timeout(60_000)
  let dir: string
  before(async () => (dir = await mkdtemp(join(tmpdir(), 'kcp-chart-audit-'))))
  after(() => rm(dir, { recursive: true, force: true }))

  const render = async (values: object): Promise<Rendered[]> => {
    const { helm } = await ensurePrograms(['helm'])
    const file = join(dir, 'values.yaml')
    await writeFile(file, stringify(values))
    const chart = join(repositoryRoot, 'charts/kcp')
    const { stdout } = await runCommand(helm, ['template', 'kcp', chart, '--kube-version', '1.34.3', '-f', file])
    return parseAllDocuments(stdout).flatMap((document) => (document.toJS() as Rendered | null) ?? [])
  }
  /** What the pods of the server have for audit; other pods have nothing. */
  const partsOf = (objects: readonly Rendered[]) => {
    const pods = objects.flatMap(({ metadata, spec }) =>
      spec?.template === undefined ? [] : [{ name: metadata.name, ...spec.template.spec }],
    )
    const found = pods.flatMap(({ name, containers, volumes = [] }) => {
      const args = containers.flatMap(({ args = [] }) => args).filter((arg) => arg.startsWith('--audit'))
      const mounts = containers
        .flatMap(({ volumeMounts = [] }) => volumeMounts)
        .filter((one) => one.name.startsWith('audit'))
      const env = containers.flatMap(({ env = [] }) => env).filter((one) => one.name === 'POD_NAME')
      const parts = { args, mounts, env, volumes: volumes.filter((one) => one.name.startsWith('audit')) }
      return Object.values(parts).some((list) => list.length > 0) ? [{ name, ...parts }] : []
    })
    expect(found.length, 'only one workload has them').to.be.at.most(1)
    return found[0]
  }
  const refusalOf = (values: object): Promise<string> => render(values).then(() => 'accepted', String)

  it('is off by default', async () => {
    const objects = await render({})
    expect(partsOf(objects)).to.equal(undefined)
    expect(objects.some(({ metadata }) => metadata.name === 'kcp-audit-policy')).to.equal(false)
  })

  for (const [mode, name] of [
    ['host', 'kcp-apiserver'],
    ['embedded', 'kcp'],
  ])
    it(`has policy, files and webhook, with flags that kcp has (storage.mode ${String(mode)})`, async () => {
      const volume = { persistentVolumeClaim: { claimName: 'audit' } }
      const log = { volume, maxSizeMiB: 50, maxBackups: 3, maxAgeDays: 7 }
      const objects = await render({ storage: { mode }, audit: { policy, log, webhook: { secretName: 'hook' } } })
      const parts = partsOf(objects)
      expect(parts?.name).to.match(new RegExp(`^${String(name)}`))
      expect(parts?.args).to.deep.equal([
        '--audit-policy-file=/etc/kcp/audit/policy.yaml',
        '--audit-log-path=/audit/$(POD_NAME).log',
        '--audit-log-maxsize=50',
        '--audit-log-maxbackup=3',
        '--audit-log-maxage=7',
        '--audit-webhook-config-file=/etc/kcp/audit-webhook/kubeconfig',
      ])
      expect(parts?.env).to.deep.equal([{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }])
      expect(parts?.mounts).to.deep.equal([
        { name: 'audit-policy', mountPath: '/etc/kcp/audit', readOnly: true },
        { name: 'audit-log', mountPath: '/audit' },
        { name: 'audit-webhook', mountPath: '/etc/kcp/audit-webhook', readOnly: true },
      ])
      expect(parts?.volumes).to.deep.equal([
        {
          name: 'audit-policy',
          configMap: { name: 'kcp-audit-policy', items: [{ key: 'policy.yaml', path: 'policy.yaml' }] },
        },
        { name: 'audit-log', ...volume },
        {
          name: 'audit-webhook',
          secret: { secretName: 'hook', defaultMode: 288, items: [{ key: 'kubeconfig', path: 'kubeconfig' }] },
        },
      ])
      const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'kcp-audit-policy')
      expect(parsePolicy(map?.data?.['policy.yaml'] ?? '').policy.rules).to.have.length(2)
      const { stdout } = await runKcp([mode === 'host' ? 'apiserver' : 'start', '--help'])
      for (const arg of parts?.args ?? []) expect(stdout).to.contain(arg.split('=')[0])
    })

  it('writes to standard output, with a policy of a ConfigMap that exists', async () => {
    const parts = partsOf(await render({ audit: { policyConfigMapName: 'mine', log: { stdout: true } } }))
    expect(parts?.args).to.deep.equal(['--audit-policy-file=/etc/kcp/audit/policy.yaml', '--audit-log-path=-'])
    expect(parts?.volumes.map((volume) => JSON.stringify(volume))).to.deep.equal([
      '{"name":"audit-policy","configMap":{"name":"mine","items":[{"key":"policy.yaml","path":"policy.yaml"}]}}',
    ])
  })

  it('refuses two places, two policies, a policy without a place, and what is no Policy', async () => {
    const emptyDir = { emptyDir: {} }
    expect(await refusalOf({ audit: { log: { stdout: true, volume: emptyDir } } })).to.include(
      'give one of stdout and volume',
    )
    const both = { policy, policyConfigMapName: 'mine', log: { stdout: true } }
    expect(await refusalOf({ audit: both })).to.include('give one of policy and policyConfigMapName')
    expect(await refusalOf({ audit: { policy } })).to.include('a policy needs a place for its events')
    for (const wrong of [{ ...policy, kind: 'Config' }, { rules: policy.rules }, { ...policy, rules: [] }])
      expect(await refusalOf({ audit: { policy: wrong, log: { stdout: true } } }), JSON.stringify(wrong)).to.include(
        'audit',
      )
    expect(await refusalOf({ audit: { log: { volume: { ...emptyDir, hostPath: {} } } } })).to.include('volume')
  })
})
