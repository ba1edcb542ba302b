// Adoption of a running namespace of a member: the plan, the refusals, the takeover without a restart, the move away,
// and the undo. On simulated members, whose API is ours; test/e2e has it on real ones.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { Network, startSimulatedMember } from '#simulation/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { isLongRun, kubectl, runKcp, waitFor, type CommandResult } from '#test/support/index.ts'
import { startWidgetOperator, widget, widgetDefinition } from '#test/support/widget-operator.ts'
import { startInstance, type KcpInstance, type Tenant } from '../kcp-instance.ts'

const within = { deadlineMs: 120_000, intervalMs: 100 }
type Pod = KubeObject & { readonly status?: { readonly phase?: string } }

describe('the adoption of a running namespace', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  const network = new Network()
  let kcp: KcpInstance
  let acme: Tenant
  const members: Record<string, string> = {}

  const startMember = async (name: string, subnet: number): Promise<void> => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-simulated-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const life = new AbortController()
    stack.defer(() => life.abort())
    const timing = { startMs: 50, pullMs: 50, stopMs: 300 }
    const nodes = { subnet, count: 1 }
    const options = { name, dir, nodes, network, timing, log: silentLogger, signal: life.signal }
    const member = stack.use(await startSimulatedMember(options))
    const file = join(dir, 'kubeconfig')
    writeFileSync(file, member.kubeconfig)
    members[name] = file
    await kubectl(file, ['apply', '-f', '-'], { input: widgetDefinition() })
    const flags = ['--kubeconfig', file, '--service-network', 'Flat', '--export', 'widgets.example.com']
    await runKcp(['member', 'join', name, ...flags, '--root-dir', kcp.rootDir])
  }
  const inOld = (...args: string[]): Promise<CommandResult> => kubectl(members['old'] ?? '', args)
  const applyInOld = (...items: object[]): Promise<CommandResult> =>
    kubectl(members['old'] ?? '', ['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
  const adopt = (namespace: string, ...flags: string[]): Promise<CommandResult> =>
    runKcp(['adopt', namespace, '--from', 'old', '--into', 'acme', '--root-dir', kcp.rootDir, ...flags], {
      expectCode: 'any',
    })
  const itemsOf = async (result: Promise<CommandResult>): Promise<Pod[]> =>
    (JSON.parse((await result).stdout) as { items: Pod[] }).items
  const podsOf = async (result: Promise<CommandResult>): Promise<string[]> =>
    (await itemsOf(result)).map(({ metadata: { name, uid } }) => `${name} ${uid}`).sort()

  /** An application of several kinds, as somebody has installed it with kubectl. */
  const application = (namespace: string): object[] => {
    const labels = { app: 'web' }
    const container = {
      name: 'web',
      image: 'demo/web:1',
      env: [{ name: 'MODE', valueFrom: { configMapKeyRef: { name: 'settings', key: 'mode' } } }],
      ports: [{ containerPort: 8080 }],
    }
    const template = { metadata: { labels }, spec: { serviceAccountName: 'web', containers: [container] } }
    const job = { spec: { restartPolicy: 'Never', containers: [{ name: 'job', image: 'demo/job:1' }] } }
    const of = (kind: string, name: string, rest: object, apiVersion = 'v1'): object => ({
      apiVersion,
      kind,
      metadata: { name, namespace, labels },
      ...rest,
    })
    return [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { team: 'shop' } } },
      of('ServiceAccount', 'web', {}),
      of('ConfigMap', 'settings', { data: { mode: 'fast' } }),
      of('ConfigMap', 'unused', { data: { a: 'b' } }),
      of('Secret', 'sh.helm.release.v1.web.v1', { type: 'helm.sh/release.v1', data: { release: 'aGVsbG8=' } }),
      of('Deployment', 'web', { spec: { replicas: 2, selector: { matchLabels: labels }, template } }, 'apps/v1'),
      of('Service', 'web', { spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] } }),
      of(
        'CronJob',
        'report',
        { spec: { schedule: '0 3 * * *', jobTemplate: { spec: { template: job } } } },
        'batch/v1',
      ),
      of('PodDisruptionBudget', 'web', { spec: { minAvailable: 1, selector: { matchLabels: labels } } }, 'policy/v1'),
      of('Role', 'reader', { rules: [] }, 'rbac.authorization.k8s.io/v1'),
    ]
  }
  const install = async (namespace: string): Promise<void> => {
    await applyInOld(...application(namespace))
    await inOld('rollout', 'status', 'deployment/web', '-n', namespace, '--timeout=60s')
  }
  /** All objects of the namespace in the member, without what each write changes. */
  const state = async (namespace: string): Promise<Record<string, string>> => {
    const kinds = 'deploy,rs,pods,svc,cm,secret,sa,cronjob,pdb,role,endpointslices'
    const items = await itemsOf(inOld('get', kinds, '-n', namespace, '-o', 'json', '--show-managed-fields'))
    const whole = [
      ...items,
      JSON.parse((await inOld('get', 'namespace', namespace, '-o', 'json')).stdout) as KubeObject,
    ]
    const texts = whole.map((one): [string, string] => {
      const { resourceVersion: _version, managedFields = [], ...metadata } = one.metadata
      const managers = managedFields.map((entry) => {
        const { time: _time, ...rest } = entry as unknown as Record<string, unknown>
        return rest
      })
      // The controllers' writes of the status come in any order.
      managers.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
      const shown = one.kind === 'EndpointSlice' ? { name: metadata.name } : { ...metadata, managers }
      return [`${one.kind}/${metadata.name ?? ''}`, JSON.stringify({ ...one, metadata: shown })]
    })
    return Object.fromEntries(texts)
  }

  const expectSame = (is: Record<string, string>, was: Record<string, string>): void => {
    expect(Object.keys(is).sort()).to.deep.equal(Object.keys(was).sort())
    for (const [name, text] of Object.entries(was)) expect(is[name], name).to.equal(text)
  }

  before(async function () {
    this.timeout(180_000)
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    for (const [i, name] of ['old', 'new'].entries()) await startMember(name, 30 + i)
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'mc/old', 'mc/new', '--timeout=60s'])
    const move = { drainSeconds: 5, forwardSeconds: 0 }
    const quick = { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'quick' }, spec: { move } }
    await acme.kubectl(['apply', '-f', '-'], { input: quick })
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  it('shows the plan, changes nothing, and names the consent that it needs', async () => {
    await install('shop')
    const before = await state('shop')
    const { stdout, stderr, code } = await adopt('shop')
    expect(code, stderr).to.equal(1)
    expect(stderr).to.match(/kubectl label namespace shop kcp\.dev\/adoptable-by=[a-z2-7]{10}/)
    expect(stdout).to.match(/Adopt +Deployment\/web/)
    expect(stdout).to.match(/Carry +ConfigMap\/unused/)
    expect(stdout).to.match(/Carry +Secret\/sh\.helm\.release\.v1\.web\.v1 .*use helm in the logical cluster/)
    expect(stdout).to.match(/Keep +Role\/reader .*grant them there/)
    expectSame(await state('shop'), before)
    expect((await acme.kubectl(['get', 'namespaces', '-o', 'name'])).stdout).not.to.contain('shop')
  })

  it('takes it over without a restart: the same pods, revisions and Services', async () => {
    const before = await podsOf(inOld('get', 'pods', '-n', 'shop', '-o', 'json'))
    const address = await inOld('get', 'service', 'web', '-n', 'shop', '-o', 'jsonpath={.spec.clusterIP}')
    // As if the member had joined with an older release.
    const role = async (): Promise<{ rules: { resources: string[] }[] }> =>
      JSON.parse((await inOld('get', 'clusterrole', 'kcp-syncer', '-o', 'json')).stdout) as never
    const rules = (await role()).rules.filter(({ resources }) => !resources.includes('controllerrevisions'))
    await inOld('patch', 'clusterrole', 'kcp-syncer', '--type=merge', '-p', JSON.stringify({ rules }))
    const { stdout, stderr, code } = await adopt('shop', '--yes', '--member-kubeconfig', members['old'] ?? '')
    expect(code, `${stdout}${stderr}`).to.equal(0)
    expect(stdout).to.match(/kubectl-client-side-apply: shares \d+ of \d+/)
    expect((await role()).rules.some(({ resources }) => resources.includes('controllerrevisions'))).to.equal(true)
    const pods = (): Promise<string[]> => podsOf(acme.kubectl(['get', 'pods', '-n', 'shop', '-o', 'json']))
    await waitFor(async () => (await pods()).length === 2, { what: 'the pods in the logical cluster', ...within })
    expect(await pods()).to.deep.equal(before)
    expect(await podsOf(inOld('get', 'pods', '-n', 'shop', '-o', 'json'))).to.deep.equal(before)
    await acme.kubectl(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=30s'])
    const now = await inOld('get', 'service', 'web', '-n', 'shop', '-o', 'jsonpath={.spec.clusterIP}')
    expect(now.stdout).to.equal(address.stdout)
    const history = await acme.kubectl(['rollout', 'history', 'deployment/web', '-n', 'shop'])
    expect(history.stdout).to.match(/^1 /m)
    const { stdout: secrets } = await acme.kubectl(['get', 'secrets', '-n', 'shop', '-o', 'name'])
    expect(secrets).to.contain('sh.helm.release.v1.web.v1')
    expect((await acme.kubectl(['logs', 'deployment/web', '-n', 'shop', '--tail=1'])).code).to.equal(0)
  })

  it('stays adopted while kcp starts again, shows pods of the old template, and follows a change of replicas', async () => {
    const condition = async (): Promise<string> =>
      (
        await kcp.admin.kubectl([
          'get',
          'adoption',
          'old.shop',
          '-o',
          'jsonpath={.status.conditions[?(@.type=="Adopted")]}',
        ])
      ).stdout
    const before = await condition()
    expect(before).to.contain('"reason":"Adopted"')
    await kcp.process.kill()
    await kcp.process.start()
    await acme.kubectl(['scale', 'deployment/web', '-n', 'shop', '--replicas=3'])
    const pods = (): Promise<string[]> => podsOf(acme.kubectl(['get', 'pods', '-n', 'shop', '-o', 'json']))
    await waitFor(async () => (await pods()).length === 3, { what: 'a third pod', ...within })
    expect(await pods()).to.deep.equal(await podsOf(inOld('get', 'pods', '-n', 'shop', '-o', 'json')))
    expect(await condition()).to.equal(before)
    const { stdout: events } = await kcp.admin.kubectl(['get', 'events', '-A'])
    expect(events).not.to.contain('is not connected')
  })

  it('loses in the member what the tenant removes, although somebody else has written it there', async () => {
    await acme.kubectl(['set', 'env', 'deployment/web', '-n', 'shop', 'MODE-'])
    await acme.kubectl(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=60s'])
    const { stdout } = await inOld('get', 'deployment', 'web', '-n', 'shop', '-o', 'jsonpath={..env}')
    expect(stdout).to.contain('KUBERNETES_SERVICE_HOST')
    expect(stdout).not.to.contain('MODE')
  })

  it('moves it to another member like any other, and gives the emptied namespace back', async () => {
    await runKcp([
      'move',
      'namespace/shop',
      '-c',
      'acme',
      '--to',
      'new',
      '--wait',
      '--timeout',
      '120',
      '--root-dir',
      kcp.rootDir,
    ])
    const left = async (): Promise<string> =>
      (await inOld('get', 'deploy,pods,svc', '-n', 'shop', '-o', 'name')).stdout.trim()
    await waitFor(async () => (await left()) === '', { what: 'an empty namespace in the old member', ...within })
    const namespace = async (): Promise<string> => (await inOld('get', 'namespace', 'shop', '-o', 'yaml')).stdout
    await waitFor(async () => !(await namespace()).includes('kcp.dev/'), { what: 'no marks of kcp', ...within })
    expect((await acme.kubectl(['get', 'namespace', 'shop', '-o', 'yaml'])).stdout).not.to.contain('adopted-namespace')
  })

  it('is undone: the objects in the member are as before, and the pods run on', async () => {
    await install('blog')
    const before = await state('blog')
    const flags = ['--yes', '--member-kubeconfig', members['old'] ?? '']
    expect((await adopt('blog', ...flags)).code).to.equal(0)
    const pods = (): Promise<string[]> => podsOf(acme.kubectl(['get', 'pods', '-n', 'blog', '-o', 'json']))
    await waitFor(async () => (await pods()).length === 2, { what: 'the pods in the logical cluster', ...within })
    const undone = await adopt('blog', '--undo', '--yes')
    expect(undone.code, undone.stderr).to.equal(0)
    expectSame(await state('blog'), before)
    const gone = async (): Promise<boolean> =>
      (await acme.kubectl(['get', 'namespace', 'blog'], { expectCode: 'any' })).stderr.includes('not found')
    await waitFor(gone, { what: 'the namespace gone from the logical cluster', ...within })
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expectSame(await state('blog'), before)
  })

  it('goes on where it was when kcp is killed again and again, and so does the undo', async () => {
    await install('killed')
    const before = await state('killed')
    const pods = await podsOf(inOld('get', 'pods', '-n', 'killed', '-o', 'json'))
    await adopt('killed', '--member-kubeconfig', members['old'] ?? '')
    const killUntil = async (mode: string, reason: string): Promise<void> => {
      const patch = JSON.stringify({ spec: { mode } })
      await kcp.admin.kubectl(['patch', 'adoption', 'old.killed', '--type=merge', '-p', patch])
      for (const afterMs of isLongRun ? [20, 120, 400, 1200] : [120, 1200]) {
        await new Promise((resolve) => setTimeout(resolve, afterMs))
        await kcp.process.kill()
        await kcp.process.start()
      }
      const path = `jsonpath={.status.conditions[?(@.type=="Adopted")].reason}`
      const found = async (): Promise<string> =>
        (await kcp.admin.kubectl(['get', 'adoption', 'old.killed', '-o', path])).stdout
      await waitFor(async () => (await found()) === reason, { what: `reason ${reason}`, ...within })
    }
    await killUntil('Adopt', 'Adopted')
    const shown = (): Promise<string[]> => podsOf(acme.kubectl(['get', 'pods', '-n', 'killed', '-o', 'json']))
    await waitFor(async () => (await shown()).length === 2, { what: 'the pods in the logical cluster', ...within })
    expect(await shown()).to.deep.equal(pods)
    await killUntil('Undo', 'Undone')
    expectSame(await state('killed'), before)
  })

  it('tells what stays in the member and why, and who refers to the namespace from outside', async () => {
    const labels = { app: 'web' }
    const container = { name: 'web', image: 'demo/web:1', env: [{ name: 'DB', value: 'db.data.svc:5432' }] }
    const of = (apiVersion: string, kind: string, [namespace, name]: [string, string], rest: object): object => ({
      ...{ apiVersion, kind, metadata: { name, namespace }, ...rest },
    })
    const deployment = (env: object[]): object => {
      const template = { metadata: { labels }, spec: { containers: [{ ...container, env }] } }
      return { spec: { replicas: 0, selector: { matchLabels: labels }, template } }
    }
    const from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'around' } } }]
    await applyInOld(
      ...['around', 'other'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
      of('apps/v1', 'Deployment', ['around', 'web'], deployment(container.env)),
      of('v1', 'Service', ['around', 'web'], { spec: { selector: labels, ports: [{ port: 80 }] } }),
      of('v1', 'Service', ['around', 'outside'], { spec: { ports: [{ port: 80 }] } }),
      of('v1', 'Pod', ['around', 'alone'], { spec: { containers: [{ name: 'a', image: 'demo/web:1' }] } }),
      of('networking.k8s.io/v1', 'NetworkPolicy', ['around', 'door'], {
        spec: { podSelector: {}, ingress: [{ from }] },
      }),
      of('apps/v1', 'Deployment', ['other', 'client'], deployment([{ name: 'URL', value: 'http://web.around:80/' }])),
      of(
        'apps/v1',
        'Deployment',
        ['other', 'unrelated'],
        deployment([{ name: 'URL', value: 'http://web.around.io/' }]),
      ),
      of('v1', 'Service', ['other', 'alias'], {
        spec: { type: 'ExternalName', externalName: 'web.around.svc.cluster.local' },
      }),
      of('networking.k8s.io/v1', 'NetworkPolicy', ['other', 'door'], {
        spec: { podSelector: {}, ingress: [{ from }] },
      }),
    )
    await applyInOld(widgetDefinition({ plural: 'gadgets', kind: 'Gadget' }))
    const found = async (): Promise<string> => (await inOld('get', '--raw', '/apis/example.com/v1')).stdout
    await waitFor(async () => (await found()).includes('gadgets'), { what: 'the second API', ...within })
    const { stdout } = await adopt('around')
    expect(stdout).to.match(/Keep +Service\/outside .*it has no selector/)
    expect(stdout).to.match(/Keep +Pod\/alone .*runs on until it ends/)
    expect(stdout).to.match(/Keep +NetworkPolicy\/door .*it goes on to hold/)
    expect(stdout).to.match(/note: gadgets\.example\.com: .*kcp member join old --export gadgets\.example\.com/)
    expect(stdout).to.match(/note: Deployment other\/client: it leads to "web\.around"/)
    expect(stdout).to.match(/note: Service other\/alias: it leads to "web\.around"/)
    expect(stdout).to.match(/note: NetworkPolicy other\/door: it selects namespace "around"/)
    expect(stdout).to.match(/note: Deployment\/web: it names "db\.data"/)
    expect(stdout).not.to.contain('other/unrelated')
    expect(stdout).not.to.match(/^Refuse/m)
  })

  it('takes over custom resources of an operator, which goes on to run what it makes, and gives them back', async () => {
    await using _operator = await startWidgetOperator(members['old'] ?? '', { name: 'web', image: 'demo/web:1' })
    await inOld('create', 'namespace', 'operated')
    await applyInOld(widget('operated', 'one', 2), widget('operated', 'untouched', 0))
    await waitFor(async () => (await inOld('get', 'deploy', '-n', 'operated', '-o', 'name')).stdout !== '', {
      what: 'the Deployment of the operator',
      ...within,
    })
    await inOld('wait', '--for=condition=Ready', 'widget/one', '-n', 'operated', '--timeout=60s')
    await inOld('wait', '--for=condition=Ready', 'widget/untouched', '-n', 'operated', '--timeout=60s')
    const untouched = async (): Promise<string> => {
      const names = ['widget/untouched', 'deploy/untouched']
      const { stdout } = await inOld('get', ...names, '-n', 'operated', '-o', 'json', '--show-managed-fields')
      return stdout.replace(/"(resourceVersion|time)": "[^"]*"/g, '')
    }
    const before = await untouched()
    const pods = await podsOf(inOld('get', 'pods', '-n', 'operated', '-o', 'json'))
    expect(pods).to.have.length(2)
    const flags = ['--yes', '--member-kubeconfig', members['old'] ?? '']
    const { stdout, stderr, code } = await adopt('operated', ...flags)
    expect(code, `${stdout}${stderr}`).to.equal(0)
    expect(stdout).to.match(/Adopt +Widget\/one/)
    expect(stdout).to.match(/Keep +Deployment\/one .*the operator of Widget "one" makes it/)
    expect((await acme.kubectl(['get', 'deploy,pods', '-n', 'operated', '-o', 'name'])).stdout).to.equal('')
    const size = ['patch', 'widget/one', '-n', 'operated', '--type=merge', '-p', '{"spec":{"size":3}}']
    await acme.kubectl(size)
    const now = (): Promise<string[]> => podsOf(inOld('get', 'pods', '-n', 'operated', '-o', 'json'))
    await waitFor(async () => (await now()).length === 3, { what: 'a third pod', ...within })
    expect(await now()).to.include.members(pods)
    await acme.kubectl(['wait', '--for=condition=Ready', 'widget/one', '-n', 'operated', '--timeout=60s'])
    const undone = await adopt('operated', '--undo', '--yes')
    expect(undone.code, undone.stderr).to.equal(0)
    expect(await untouched()).to.equal(before)
    expect((await inOld('get', 'widget,deploy,pods', '-n', 'operated', '-o', 'yaml')).stdout).not.to.contain('kcp.dev/')
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(await now())
      .to.include.members(pods)
      .and.have.length(3)
  })

  for (const { title, change, expected } of [
    {
      title: 'an object that Argo CD applies',
      change: ['annotate', 'deployment/web', 'argocd.argoproj.io/tracking-id=shop:apps/Deployment:x/web'],
      expected: /Application "shop" of Argo CD applies it: .*point its destination at the logical cluster/,
    },
    {
      title: 'an object that Flux applies',
      change: [
        'label',
        'service/web',
        'kustomize.toolkit.fluxcd.io/name=apps',
        'kustomize.toolkit.fluxcd.io/namespace=flux',
      ],
      expected: /Kustomization "flux\/apps" of Flux applies it/,
    },
  ])
    it(`refuses ${title}, and names the owner`, async () => {
      const namespace = `refused-${change[0]}`
      await install(namespace)
      await inOld(...change, '-n', namespace)
      const { stderr, code } = await adopt(namespace, '--yes', '--member-kubeconfig', members['old'] ?? '')
      expect(code).to.equal(1)
      expect(stderr).to.match(expected)
      expect((await acme.kubectl(['get', 'namespaces', '-o', 'name'])).stdout).not.to.contain(namespace)
    })

  it('refuses namespaces of the cluster itself, and a namespace that is of another logical cluster', async () => {
    for (const name of ['kube-system', 'default'])
      expect((await adopt(name, '--yes', '--member-kubeconfig', members['old'] ?? '')).stderr).to.contain(
        'belongs to the member cluster itself',
      )
    await kcp.tenant('globex')
    await install('ours')
    expect((await adopt('ours', '--yes', '--member-kubeconfig', members['old'] ?? '')).code).to.equal(0)
    await kcp.admin.kubectl(['create', '-f', '-'], {
      input: {
        apiVersion: 'kcp.dev/v1alpha1',
        kind: 'Adoption',
        metadata: { name: 'thief' },
        spec: { member: 'old', namespace: 'ours', logicalCluster: 'globex', mode: 'Adopt' },
      },
    })
    const message = async (): Promise<string> =>
      (await kcp.admin.kubectl(['get', 'adoption', 'thief', '-o', 'jsonpath={.status.conditions[*].message}'])).stdout
    await waitFor(async () => (await message()) !== '', { what: 'a condition', ...within })
    expect(await message()).to.contain('belongs to logical cluster "acme" already')
  })

  it('is not for tenants', async () => {
    const { stderr } = await acme.kubectl(['get', 'adoptions'], { expectCode: 'any' })
    expect(stderr).to.contain(`the server doesn't have a resource type "adoptions"`)
    const annotate = ['annotate', 'namespace', 'default', 'kcp.dev/adopted-namespace={"member":"old"}']
    const refused = await acme.kubectl(annotate, { expectCode: 'any' })
    const { stdout } = await acme.kubectl(['get', 'namespace', 'default', '-o', 'yaml'])
    expect(stdout, refused.stderr).not.to.contain('adopted-namespace')
  })
})
