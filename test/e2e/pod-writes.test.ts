// Tenants' writes of pods that run in a member: each is true there once it is answered, or is refused with the member's
// reason.
import { expect } from 'chai'
import { agnhostImage, kubectl, needsNodes, waitFor, type CommandResult } from '#test/support/index.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { toolbox } from './manifests.ts'

interface Pod {
  metadata: {
    name: string
    uid: string
    labels: Record<string, string>
    annotations?: Record<string, string>
    ownerReferences?: unknown[]
    deletionTimestamp?: string
    deletionGracePeriodSeconds?: number
  }
  spec: {
    containers: { resources?: { requests?: Record<string, string> } }[]
    ephemeralContainers?: { name: string; env?: { name: string; value?: string }[] }[]
  }
  status: {
    conditions?: { type: string; status: string }[]
    ephemeralContainerStatuses?: { state: { running?: object } }[]
  }
}

endLabAfterAll()

describe('writes on pods that a member runs', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let alice = ''
  let bob = ''
  let space = ''

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    await installation.join(clusters.east)
    for (const [name, user] of [
      ['acme', 'alice'],
      ['other', 'bob'],
    ] as const)
      await createLogicalCluster(installation, name, user)
    alice = await installation.tenant('acme', 'alice')
    bob = await installation.tenant('other', 'bob')
    space = `${await idOf(installation, 'acme')}-default`
    await as(['apply', '-f', '-'], { input: toolbox('default') })
    await as(['rollout', 'status', 'deployment/toolbox', '--timeout=90s'])
  })
  after(async function () {
    this.timeout(120_000)
    await using _ = stack
    if (alice !== '') await deleteAll(installation.admin)
  })

  const as = (args: string[], options: object = {}): Promise<CommandResult> => kubectl(alice, args, options)
  const refused = async (args: string[], options: object = {}): Promise<string> =>
    (await as(args, { ...options, expectCode: 1 })).stderr
  const pods = async (): Promise<Pod[]> =>
    (JSON.parse((await as(['get', 'pods', '-l', 'app=toolbox', '-o', 'json'])).stdout) as { items: Pod[] }).items
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 60_000 })
  /** The name of the one pod, once it is ready and no other is left. */
  const running = (): Promise<string> =>
    until('one ready pod', async () => {
      const found = await pods()
      const [pod] = found
      const isReady = pod?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
      return found.length === 1 && isReady === true && pod?.metadata.deletionTimestamp === undefined
        ? pod?.metadata.name
        : undefined
    })
  const upstream = async (name: string): Promise<Pod> =>
    JSON.parse((await as(['get', 'pod', name, '-o', 'json'])).stdout) as Pod
  const inMember = async (name: string): Promise<Pod | undefined> => {
    const { stdout } = await clusters.east.kubectl([
      ...['get', 'pod', name, '-n', space, '-o', 'json', '--ignore-not-found'],
    ])
    return stdout === '' ? undefined : (JSON.parse(stdout) as Pod)
  }
  const evict = (name: string, options: object = {}): Promise<CommandResult> =>
    as(['create', '--raw', `/api/v1/namespaces/default/pods/${name}/eviction`, '-f', '-'], {
      input: JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } }),
      ...options,
    })

  it('sets and removes labels and annotations', async () => {
    const name = await running()
    await as(['label', 'pod', name, 'colour=red'])
    await as(['annotate', 'pod', name, 'prometheus.io/port=8080', 'example.com/not-for-members=x'])
    const { metadata } = (await inMember(name))!
    expect(metadata.labels).to.include({ colour: 'red' })
    expect(metadata.annotations).to.include({ 'prometheus.io/port': '8080' })
    expect(metadata.annotations).to.not.have.property('example.com/not-for-members')
    await as(['label', 'pod', name, 'colour-'])
    expect((await inMember(name))?.metadata.labels).to.not.have.property('colour')
  })

  it('leaves labels of kcp alone, and refuses to change those of the owner', async () => {
    const name = await running()
    const before = (await inMember(name))?.metadata.labels
    await as(['label', 'pod', name, 'kcp.dev/managed=no', '--overwrite'])
    expect(await refused(['label', 'pod', name, 'pod-template-hash=x', '--overwrite'])).to.contain(
      'its label "pod-template-hash" ties it to its owner in the member cluster',
    )
    expect((await inMember(name))?.metadata.labels).to.deep.equal(before)
  })

  it('changes nothing in a dry run', async () => {
    const name = await running()
    await as(['label', 'pod', name, 'colour=blue', '--dry-run=server'])
    await as(['delete', 'pod', name, '--dry-run=server'])
    const { metadata } = (await inMember(name))!
    expect(metadata.labels).to.not.have.property('colour')
    expect(metadata.deletionTimestamp).to.equal(undefined)
  })

  it('adds a container for debugging, whose output can be read', async () => {
    const name = await running()
    const debug = ['debug', name, `--image=${agnhostImage}`, '-c', 'debugger', '--profile=baseline', '--']
    await as([...debug, '/agnhost', 'pause'])
    const added = (await inMember(name))?.spec.ephemeralContainers?.find((one) => one.name === 'debugger')
    expect(added?.env?.map((variable) => variable.name)).to.include('KUBERNETES_SERVICE_HOST')
    await until('the container to run', async () =>
      (await upstream(name)).status.ephemeralContainerStatuses?.some(({ state }) => state.running !== undefined),
    )
    await until('its output', async () => (await as(['logs', name, '-c', 'debugger'])).stdout.includes('Paused'))
    const privileged = ['debug', name, `--image=${agnhostImage}`, '-c', 'root', '--profile=sysadmin', '--', '/agnhost']
    expect(await refused(privileged)).to.match(/violates PodSecurity "baseline:latest": privileged/)
  })

  it('resizes', async () => {
    await as(['set', 'resources', 'deployment/toolbox', '-c', 'web', '--requests=cpu=10m'])
    await as(['rollout', 'status', 'deployment/toolbox', '--timeout=90s'])
    const name = await running()
    const patch = { spec: { containers: [{ name: 'web', resources: { requests: { cpu: '20m' } } }] } }
    await as(['patch', 'pod', name, '--subresource=resize', '-p', JSON.stringify(patch)])
    expect((await inMember(name))?.spec.containers[0]?.resources?.requests).to.deep.equal({ cpu: '20m' })
  })

  it('passes conditions on, and refuses addresses', async () => {
    const name = await running()
    const condition = { type: 'example.com/checked', status: 'True' }
    const write = (status: object): string[] => [
      ...['patch', 'pod', name, '--subresource=status', '-p'],
      JSON.stringify({ status }),
    ]
    await as(write({ conditions: [condition] }))
    expect((await inMember(name))?.status.conditions?.find(({ type }) => type === condition.type)).to.include(condition)
    expect(await refused(write({ phase: 'Failed' }))).to.contain('set by kcp from what runs in a member cluster')
    expect(await refused(write({ hostIP: '10.9.9.9' }))).to.contain('status.hostIP')
  })

  it('is refused with the reason of the member', async () => {
    const name = await running()
    const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['pods'] }
    const policy = 'no-secret-label'
    const version = 'admissionregistration.k8s.io/v1'
    const validation = { expression: "!('secret' in object.metadata.labels)", message: `no secrets in ${space} here` }
    const objects = [
      {
        ...{ apiVersion: version, kind: 'ValidatingAdmissionPolicy', metadata: { name: policy } },
        spec: { matchConstraints: { resourceRules: [rule] }, validations: [validation] },
      },
      {
        ...{ apiVersion: version, kind: 'ValidatingAdmissionPolicyBinding', metadata: { name: policy } },
        spec: { policyName: policy, validationActions: ['Deny'] },
      },
    ]
    for (const object of objects) await clusters.east.kubectl(['apply', '-f', '-'], { input: JSON.stringify(object) })
    try {
      const stderr = await until('the refusal', async () => {
        const { code, stderr: said } = await as(['label', 'pod', name, 'secret=x'], { expectCode: 'any' })
        if (code === 0) await as(['label', 'pod', name, 'secret-'])
        return code !== 0 && said
      })
      expect(stderr).to.contain('no secrets in default here')
      expect((await upstream(name)).metadata.labels).to.not.have.property('secret')
    } finally {
      for (const { kind } of objects) await clusters.east.kubectl(['delete', kind, policy])
    }
  })

  it('is evicted only as far as its budget in the member allows', async () => {
    const name = await running()
    await as(['create', 'poddisruptionbudget', 'toolbox', '--selector=app=toolbox', '--min-available=1'])
    await until('the budget in the member', async () => {
      const { stdout } = await clusters.east.kubectl(['get', 'pdb', '-n', space, '-o', 'jsonpath={..currentHealthy}'])
      return stdout === '1'
    })
    expect((await evict(name, { expectCode: 1 })).stderr).to.contain(
      "Cannot evict pod as it would violate the pod's disruption budget.",
    )
    expect((await inMember(name))?.metadata.deletionTimestamp).to.equal(undefined)
    await as(['delete', 'poddisruptionbudget', 'toolbox'])
    await until('the end of the budget in the member', async () => {
      const { stdout } = await clusters.east.kubectl(['get', 'pdb', '-n', space, '-o', 'name'])
      return stdout === ''
    })
    await evict(name)
    const left = await inMember(name)
    expect(left === undefined || left.metadata.deletionTimestamp !== undefined).to.equal(true)
    expect(await running()).to.not.equal(name)
  })

  it('is deleted with its grace period, by its uid only', async () => {
    await as([
      ...['patch', 'deployment', 'toolbox', '-p'],
      JSON.stringify({ spec: { template: { spec: { terminationGracePeriodSeconds: 20 } } } }),
    ])
    await as(['rollout', 'status', 'deployment/toolbox', '--timeout=90s'])
    const name = await running()
    const path = `/api/v1/namespaces/default/pods/${name}`
    const preconditions = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'of-another' } }
    const wrong = await refused(['delete', '--raw', path, '-f', '-'], { input: JSON.stringify(preconditions) })
    expect(wrong).to.match(/Conflict.*of-another/s)
    expect((await inMember(name))?.metadata.deletionTimestamp).to.equal(undefined)
    await as(['delete', 'pod', name, '--grace-period=7', '--wait=false'])
    const left = await inMember(name)
    expect(left?.metadata.deletionGracePeriodSeconds ?? 7).to.equal(7)
    expect(left === undefined || left.metadata.deletionTimestamp !== undefined).to.equal(true)
    expect(await running()).to.not.equal(name)
  })

  it('is released by its owner when its labels do not match any more, and replaced', async () => {
    const name = await running()
    await as(['label', 'pod', name, 'app=released', '--overwrite'])
    expect(await running()).to.not.equal(name)
    await until('no owner', async () => (await upstream(name)).metadata.ownerReferences === undefined)
    await as(['delete', 'pod', name, '--timeout=60s'])
    expect(await inMember(name)).to.equal(undefined)
  })

  it('never reaches a pod of another logical cluster, whatever its tenant claims', async () => {
    const name = await running()
    const { uid } = (await upstream(name)).metadata
    const annotations = { 'kcp.dev/member': 'east', 'kcp.dev/member-uid': uid, 'kcp.dev/clusters': 'none' }
    const spec = { containers: [{ name: 'web', image: agnhostImage }] }
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, uid, annotations }, spec })
    await kubectl(bob, ['create', '-f', '-'], { input })
    for (const args of [
      ['exec', name, '--', '/agnhost'],
      ['attach', name],
      ['port-forward', name, ':8080'],
    ]) {
      const { stderr } = await kubectl(bob, args, { expectCode: 1 })
      expect(stderr, args[0] ?? '').to.match(/does not have a host assigned|pod is not running/)
    }
    await kubectl(bob, ['label', 'pod', name, 'stolen=yes'])
    await kubectl(bob, ['delete', 'pod', name, '--force', '--grace-period=0'])
    const { metadata } = (await inMember(name))!
    expect(metadata.labels).to.not.have.property('stolen')
    expect(metadata.deletionTimestamp).to.equal(undefined)
  })
})
