// Manifest sets of well-known applications, through everything a person does to them with kubectl, in two logical
// clusters at once.
import { expect } from 'chai'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { startInstance, type KcpInstance, type Tenant } from '../integration/kcp-instance.ts'
import { ensurePrograms, kubectlEnvironment, runCommand } from '../support/index.ts'

const folder = join(import.meta.dirname, 'applications')
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))

// What kubectl patches again at every apply (lists without merge keys whose items have defaults, stringData, selectors
// that are replaced), to no effect: as seen of kube-apiserver 1.34.3 with these files.
const stateful = (name: string): string[] => [`statefulset.apps/${name}`, `poddisruptionbudget.policy/${name}`]
const webhooks = (name: string): string[] =>
  ['validating', 'mutating'].map((kind) => `${kind}webhookconfiguration.admissionregistration.k8s.io/${name}`)
const configuredAgain: Readonly<Record<string, readonly string[]>> = {
  'backups.yaml': ['secret/registry'],
  'elasticsearch.yaml': stateful('elasticsearch'),
  'grafana.yaml': ['secret/grafana'],
  'ingress-nginx.yaml': ['deployment.apps/ingress-nginx-controller'],
  'kafka.yaml': stateful('kafka'),
  'metrics-server.yaml': ['deployment.apps/metrics-server'],
  'policies.yaml': ['networkpolicy.networking.k8s.io/web', 'limitrange/team', 'poddisruptionbudget.policy/web'],
  'postgres.yaml': stateful('postgres'),
  'rabbitmq.yaml': stateful('rabbitmq'),
  'redis.yaml': stateful('redis'),
  'webhook-controller.yaml': webhooks('issuer-webhook'),
  'wordpress.yaml': ['secret/mysql-pass'],
}
const scalable = new Set(['Deployment', 'StatefulSet'])

describe('manifests of well-known applications', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let tenants: readonly Tenant[]
  let dir: string
  let editor: string

  before(async () => {
    expect(files).to.have.length.of.at.least(12)
    dir = mkdtempSync(join(tmpdir(), 'kcp-editor-'))
    editor = join(dir, 'editor')
    writeFileSync(editor, '#!/bin/sh\nsed -i "s/^metadata:/metadata:\\n  finalizers: [test.dev\\/edited]/" "$1"\n')
    chmodSync(editor, 0o755)
    kcp = await startInstance()
    tenants = [await kcp.tenant('acme'), await kcp.tenant('umbrella')]
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  for (const name of files) it(name, () => Promise.all(tenants.map((tenant) => live(tenant, join(folder, name)))))

  async function live(tenant: Tenant, file: string): Promise<void> {
    const run = async (...args: string[]): Promise<string> => (await tenant.kubectl(args)).stdout
    const objects = parseAllDocuments(readFileSync(file, 'utf8')).map(
      (document) => document.toJS() as { kind: string; metadata: { name: string } },
    )
    const count = objects.length
    const lines = (text: string, end: string): number => text.split('\n').filter((line) => line.endsWith(end)).length
    const applyAgain = async (): Promise<void> => {
      const said = await run('apply', '-f', file)
      const configured = said.split('\n').filter((line) => line.endsWith(' configured'))
      expect(configured.map((line) => line.slice(0, line.indexOf(' ')))).to.deep.equal(
        configuredAgain[basename(file)] ?? [],
      )
      expect(lines(said, ' unchanged')).to.equal(count - configured.length)
    }
    expect(lines(await run('apply', '-f', file), ' created')).to.equal(count)
    const versions = ['get', '-f', file, '-o', 'jsonpath={.items[*].metadata.resourceVersion}']
    const before = await run(...versions)
    await applyAgain()
    expect(await run(...versions)).to.equal(before)
    expect(await run('diff', '-f', file)).to.equal('') // exit code 0: no difference
    const shown = await run('get', '-f', file, '-o', 'wide')
    for (const { metadata } of objects) expect(shown).to.include(metadata.name)
    expect((await run('describe', '-f', file)).match(/^Name: /gm)).to.have.length(count)
    expect(lines(await run('label', '-f', file, 'team=a'), ' labeled')).to.equal(count)
    expect(lines(await run('annotate', '-f', file, 'note=b'), ' annotated')).to.equal(count)
    await applyAgain() // both are nobody's business
    for (const { kind, metadata } of objects.filter(({ kind }) => scalable.has(kind))) {
      const what = `${kind}/${metadata.name}`
      expect(await run('scale', what, '--replicas=7')).to.match(/ scaled\n$/)
      expect(await run('get', what, '-o', 'jsonpath={.spec.replicas}')).to.equal('7')
    }
    const first = `${objects[0]!.kind}/${objects[0]!.metadata.name}`
    expect(await edit(tenant, first)).to.match(/ edited\n$/)
    expect(await run('get', first, '-o', 'jsonpath={.metadata.finalizers[0]}')).to.equal('test.dev/edited')
    await run('patch', first, '--type=merge', '-p', '{"metadata":{"finalizers":null}}')
    expect((await run('delete', '-f', file, '--timeout=30s')).match(/^\S+ "\S+" deleted/gm)).to.have.length(count)
    expect(await run('get', '-f', file, '--ignore-not-found')).to.equal('')
  }

  async function edit({ kubeconfig }: Tenant, what: string): Promise<string> {
    const { kubectl } = await ensurePrograms(['kubectl'])
    const env = { ...kubectlEnvironment(kubeconfig), KUBE_EDITOR: editor }
    return (await runCommand(kubectl, ['--kubeconfig', kubeconfig, 'edit', what], { env })).stdout
  }
})
