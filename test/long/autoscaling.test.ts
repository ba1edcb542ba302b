// HorizontalPodAutoscalers whose metrics an unmodified metrics-server in each member reads from real kubelets. The same
// application has the same load three times: divided over two members, whole in one member, and in that member without
// kcp, to compare with.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import {
  cacheDir,
  ensurePrograms,
  installMetricsServer,
  kubectl,
  needsNodes,
  waitFor,
  writeImageArchive,
  type Cluster,
  type CommandResult,
} from '#test/support/index.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from '#test/e2e/installation.ts'
import { cgroupHierarchies } from '#test/support/system-packages.ts'
import { endLabAfterAll, lab } from '#test/e2e/lab.ts'
import { startLoad, type Load } from '#test/e2e/load.ts'
import { documents, namespace, type Manifest } from '#test/e2e/manifests.ts'

const image = 'kcp.test/web-load:1'
/**
 * Ten requests a second that take 6 ms of CPU time each: six pods at the target, and what pods use without requests.
 */
const load = { perSecond: 10, cpuOfRequest: '6ms' } as const
const [minReplicas, maxReplicas, targetPercent, requestMilli] = [2, 10, 40, 25]
/** `--horizontal-pod-autoscaler-tolerance` of kube-controller-manager. */
const tolerance = 0.1
const reasonUp = 'cpu resource utilization (percentage of request) above target'

interface AutoscalerStatus {
  readonly currentReplicas?: number
  readonly desiredReplicas: number
  readonly currentMetrics?:
    | readonly { readonly resource?: { readonly current: { averageUtilization?: number; averageValue: string } } }[]
    | null
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[]
}

interface PodMetrics {
  readonly metadata: { readonly name: string }
  readonly timestamp: string
  readonly window: string
  readonly containers: readonly { readonly name: string; readonly usage: Readonly<Record<string, string>> }[]
}

/** One of the three applications: who asks for it, and where it runs. */
interface Place {
  readonly title: 'divided' | 'whole' | 'plain'
  readonly as: (args: readonly string[], options?: object) => Promise<CommandResult>
  /** The members that may run its pods, and their namespace there. */
  readonly members: readonly Cluster[]
  readonly below: string
  /** From where requests come. */
  readonly client: Cluster
}

/** What was seen of an autoscaler and its Deployment at about the same time. */
interface Sight {
  readonly replicas: number
  readonly ready: number
  readonly desired: number
  readonly percent: number | undefined
  readonly conditions: string
}

endLabAfterAll()

describe('autoscaling by the CPU time that pods use', function () {
  this.timeout(900_000)
  const stack = new AsyncDisposableStack()
  const watching = new AbortController()
  const sights = new Map<Place['title'], Sight[]>()
  const loads = new Map<Place['title'], Load>()
  let installation: Installation
  let places: Place[] = []
  let divided: Place
  let whole: Place

  before(async function () {
    await needsNodes(this)
    this.timeout(1_800_000) // the first build of metrics-server takes minutes
    await ensurePrograms(['metrics-server', 'web-load'])
    const archive = await webLoadArchive()
    const { east, west } = await lab()
    await Promise.all(
      [east, west].map(async (member) => {
        await member.node?.importImages(archive)
        await installMetricsServer(member)
      }),
    )
    installation = stack.use(await installWithoutHost({ east }))
    for (const member of [east, west]) await installation.join(member)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    const alice = await installation.tenant('acme', 'alice')
    const id = await idOf(installation, 'acme')
    const upstream =
      (space: string): Place['as'] =>
      (args, options) =>
        kubectl(alice, ['-n', space, ...args], options)
    divided = {
      ...{ title: 'divided', as: upstream('divided'), members: [east, west] },
      ...{ below: `${id}-divided`, client: west },
    }
    whole = { title: 'whole', as: upstream('whole'), members: [east], below: `${id}-whole`, client: east }
    const plain: Place = {
      ...{ title: 'plain', as: (args, options) => east.kubectl(['-n', 'plain', ...args], options) },
      ...{ members: [east], below: 'plain', client: east },
    }
    places = [divided, whole, plain]
    const spaces = [namespace('divided'), namespace('whole', 'east'), placement({ replicas: { mode: 'Divide' } })]
    await kubectl(alice, ['apply', '-f', '-'], { input: documents(spaces) })
    await east.kubectl(['apply', '-f', '-'], { input: namespace('plain') })
    for (const { as } of places) await as(['apply', '-f', '-'], { input: documents(application) })
    for (const { as } of places) await as(['rollout', 'status', 'deployment/web', '--timeout=180s'])
    const watchers = places.map(watch)
    stack.defer(async () => {
      watching.abort()
      await Promise.all(watchers)
    })
  })
  after(async function () {
    this.timeout(120_000)
    await Promise.all([...loads.values()].map((one) => one.stop()))
    await stack.disposeAsync()
  })

  const statusOf = async ({ as }: Place): Promise<AutoscalerStatus> => {
    const { stdout } = await as(['get', 'hpa', 'web', '-o', 'json'])
    return (JSON.parse(stdout) as { status: AutoscalerStatus }).status
  }
  const percentOf = ({ currentMetrics }: AutoscalerStatus): number | undefined =>
    currentMetrics?.[0]?.resource?.current.averageUtilization
  const conditionsOf = ({ conditions = [] }: AutoscalerStatus): string =>
    conditions.map(({ type, status, reason }) => `${type}=${status}:${reason}`).join(' ')

  /** Notes and prints each change until the end. */
  async function watch(place: Place): Promise<void> {
    const seen: Sight[] = []
    sights.set(place.title, seen)
    const began = performance.now()
    while (!watching.signal.aborted) {
      const sight = await look(place).catch((error: unknown) => console.log(`      ${place.title}: ${String(error)}`))
      if (sight !== undefined && JSON.stringify(seen.at(-1)) !== JSON.stringify(sight)) {
        seen.push(sight)
        const { replicas, ready, desired, percent, conditions } = sight
        const numbers = `${ready}/${replicas} ready, ${desired} desired, cpu ${percent}%`
        console.log(
          `      ${((performance.now() - began) / 1000).toFixed(0)} s ${place.title}: ${numbers}, ${conditions}`,
        )
      }
      await sleep(2000, undefined, { signal: watching.signal }).catch(() => undefined)
    }
  }

  async function look(place: Place): Promise<Sight> {
    const status = await statusOf(place)
    const { stdout } = await place.as(['get', 'deployment', 'web', '-o', 'json'])
    const deployment = JSON.parse(stdout) as { spec: { replicas: number }; status: { readyReplicas?: number } }
    return {
      replicas: deployment.spec.replicas,
      ready: deployment.status.readyReplicas ?? 0,
      desired: status.desiredReplicas,
      percent: percentOf(status),
      conditions: conditionsOf(status),
    }
  }

  const until = <T>(what: string, condition: () => Promise<T>): Promise<T> =>
    waitFor(condition, { what, deadlineMs: 420_000, intervalMs: 1000 })
  const untilEach = async (what: string, condition: (place: Place) => Promise<unknown>): Promise<void> => {
    await Promise.all(places.map((place) => until(`${what}, ${place.title}`, () => condition(place))))
  }

  /** More replicas than without load, and no reason to change their number. */
  const isBalanced = async (place: Place): Promise<boolean> => {
    const status = await statusOf(place)
    const { currentReplicas = 0, desiredReplicas, conditions = [] } = status
    const isActive = conditions.some(({ type, status: is }) => type === 'ScalingActive' && is === 'True')
    const isOnTarget = Math.abs((percentOf(status) ?? 0) / targetPercent - 1) <= tolerance
    return isActive && currentReplicas > minReplicas && currentReplicas === desiredReplicas && isOnTarget
  }

  /** What the Deployment asks for in each member, and its autoscalers there. */
  const below = (place: Place): Promise<{ replicas: number; autoscalers: string }[]> =>
    Promise.all(
      place.members.map(async (member) => {
        const get = async (resource: string, path: string): Promise<string> =>
          (await member.kubectl(['-n', place.below, 'get', resource, '-o', `jsonpath=${path}`])).stdout
        return {
          replicas: Number(await get('deployments', '{.items[*].spec.replicas}')),
          autoscalers: await get('hpa', '{.items[*].metadata.name}'),
        }
      }),
    )

  /** Names of its pods in a member that run, with the ids of their containers. */
  const podsIn = async (member: Cluster, place: Place): Promise<{ name: string; container: string }[]> => {
    const columns = 'NAME:.metadata.name,ID:.status.containerStatuses[0].containerID'
    const args = [
      'get',
      'pods',
      '--field-selector=status.phase=Running',
      '--no-headers',
      '-o',
      `custom-columns=${columns}`,
    ]
    const { stdout } = await member.kubectl(['-n', place.below, ...args])
    const lines = stdout.split('\n').filter((line) => line !== '')
    return lines.map((line) => {
      const [name = '', id = ''] = line.split(/\s+/)
      return { name, container: id.replace('containerd://', '') }
    })
  }

  const podMetricsOf = async (get: Place['as'], space: string): Promise<PodMetrics[]> => {
    const { stdout } = await get(['get', '--raw', `/apis/metrics.k8s.io/v1beta1/namespaces/${space}/pods`])
    return (JSON.parse(stdout) as { items: PodMetrics[] }).items
  }

  it('tells what the kernel counted, of the pods in both members', async () => {
    await untilEach('a metric', async (place) => percentOf(await statusOf(place)) !== undefined)
    for (const member of divided.members) {
      const [pod] = await podsIn(member, divided)
      const [earliest, atLeast] = [Date.now(), cpuNanos(member, pod!.container)]
      const counted = await until(`a new number of the kubelet of ${member.name}`, async () => {
        const text = String(await member.get(`/api/v1/nodes/${member.node!.name}/proxy/metrics/resource`))
        const line = text.split('\n').find((one) => one.startsWith('container_cpu_usage') && one.includes(pod!.name))
        const [, seconds, atMs] = line?.split(' ') ?? []
        return Number(atMs) > earliest && Math.round(Number(seconds) * 1e9)
      })
      const atMost = cpuNanos(member, pod!.container)
      console.log(`      ${member.name}: ${atLeast} ns of CPU time, then the kubelet says ${counted}, then ${atMost}`)
      expect(counted).to.be.at.least(atLeast).and.at.most(atMost)
    }
    await until('the same numbers as in the members', async () => {
      const names: string[] = []
      const told = await podMetricsOf(divided.as, 'divided')
      for (const member of divided.members) {
        const measured = await podMetricsOf((args, options) => member.kubectl(args, options), divided.below)
        for (const { metadata, timestamp, window, containers } of measured) {
          const one = told.find(({ metadata: { name } }) => name === metadata.name)
          expect(one).to.deep.include({ timestamp, window, containers })
          names.push(metadata.name)
        }
      }
      expect(told).to.have.length(minReplicas)
      const { stdout } = await divided.as(['top', 'pods', '--no-headers'])
      expect(stdout.split('\n').flatMap((line) => line.split(/\s+/)[0] || [])).to.have.members(names)
      return true
    })
  })

  it('adds replicas under load until the pods use what they should', async () => {
    for (const { title, client, below: space } of places) {
      const path = 'jsonpath={.spec.clusterIP}'
      const { stdout } = await client.kubectl(['-n', space, 'get', 'service', 'web', '-o', path])
      loads.set(title, await startLoad(client, `http://${stdout}/?cpu=${load.cpuOfRequest}`, load))
    }
    await untilEach('balance', isBalanced)
    await until('the replicas of both members', async () => {
      const { replicas } = await look(divided)
      const [east, west] = await below(divided)
      expect(east!.replicas + west!.replicas).to.equal(replicas)
      expect(Math.abs(east!.replicas - west!.replicas)).to.be.at.most(1)
      return true
    })
    expect((await below(divided)).map(({ autoscalers }) => autoscalers)).to.deep.equal(['', ''])
    expect((await below(whole)).map(({ autoscalers }) => autoscalers)).to.deep.equal(['web'])
    await until('kubectl top to show the pods of both members', async () => {
      const { stdout } = await divided.as(['top', 'pods', '--no-headers'])
      for (const member of divided.members) {
        const pods = await podsIn(member, divided)
        expect(pods.length).to.be.at.least(1)
        for (const { name } of pods) expect(stdout).to.match(new RegExp(`^${name} +\\d+m +\\d+Mi`, 'm'))
      }
      return true
    })
    for (const { as } of places) {
      const { stdout } = await as(['describe', 'hpa', 'web'])
      expect(stdout).to.match(/SuccessfulRescale .*New size: \d+; reason: /)
      expect(stdout).to.contain(reasonUp)
      const { stdout: row } = await as(['get', 'hpa', 'web', '--no-headers'])
      expect(row).to.match(
        new RegExp(String.raw`^web +Deployment/web +cpu: (\d+%|<unknown>)/40% +${minReplicas} +${maxReplicas} +\d+ `),
      )
    }
  })

  it('goes on in the one member that gets the whole workload, and again when it is divided', async () => {
    const before = sights.get('divided')!.length
    await kubectlApply(placement({ clusters: ['west'] }))
    await until('west alone', async () => {
      const [east, west] = await below(divided)
      return east!.replicas === 0 && west!.replicas > 0 && east!.autoscalers === '' && west!.autoscalers === 'web'
    })
    await until('balance in west', () => isBalanced(divided))
    await kubectlApply(placement({ replicas: { mode: 'Divide' } }))
    await until('both members', async () => {
      const [east, west] = await below(divided)
      return east!.replicas > 0 && west!.replicas > 0 && `${east!.autoscalers}${west!.autoscalers}` === ''
    })
    await until('balance in both', () => isBalanced(divided))
    for (const { replicas, desired, conditions } of sights.get('divided')!.slice(before)) {
      expect(replicas, 'replicas under load').to.be.greaterThan(minReplicas)
      // What is known stays until the other autoscaler has looked.
      expect(desired, 'desired replicas under load').to.be.greaterThan(minReplicas)
      expect(conditions).to.contain('ScalingActive=')
    }
  })

  it('removes replicas after the load, and never had too many or too few', async () => {
    for (const { title } of places) {
      const { sent, failed, errors } = await loads.get(title)!.stop()
      console.log(`      ${title}: ${sent} requests sent, ${failed} failed`, errors.slice(0, 3))
      // A pod has a fortieth of a core: on a busy machine it may take longer.
      const refused = errors.filter((error) => !error.includes('no answer within'))
      if (title === 'divided') expect(refused).to.deep.equal([])
    }
    await untilEach('the least replicas', async (place) => {
      const status = await statusOf(place)
      expect(status).to.deep.include({ currentReplicas: minReplicas, desiredReplicas: minReplicas })
      expect(conditionsOf(status)).to.contain('ScalingLimited=True:TooFewReplicas')
      expect((await look(place)).ready).to.equal(minReplicas)
      return true
    })
    expect((await below(divided)).map(({ replicas }) => replicas)).to.deep.equal([1, 1])
    for (const { title, as } of places) {
      expect((await as(['describe', 'hpa', 'web'])).stdout).to.contain('reason: All metrics below target')
      for (const { replicas, desired } of sights.get(title)!) {
        expect(replicas, title).to.be.within(minReplicas, maxReplicas)
        // 0: the autoscaler of a member has not looked yet.
        if (desired !== 0) expect(desired, title).to.be.within(minReplicas, maxReplicas)
      }
    }
  })

  async function kubectlApply(manifest: Manifest): Promise<void> {
    await divided.as(['apply', '-f', '-'], { input: manifest })
  }
})

/** The CPU time of a container as its cgroup counts it, in nanoseconds. */
function cpuNanos({ run, name }: Cluster, container: string): number {
  const pods = cgroupHierarchies()
    .filter((hierarchy) => existsSync(join(hierarchy, 'cpuacct.usage')) || existsSync(join(hierarchy, 'cpu.stat')))
    .map((hierarchy) => join(hierarchy, `kcp-${run.id}-${name}`, 'kubepods', 'burstable'))
  for (const dir of pods.filter((one) => existsSync(one)))
    for (const pod of readdirSync(dir)) {
      const v1 = join(dir, pod, container, 'cpuacct.usage')
      if (existsSync(v1)) return Number(readFileSync(v1, 'utf8'))
      const v2 = join(dir, pod, container, 'cpu.stat')
      const [, micros] = existsSync(v2) ? (/^usage_usec (\d+)/.exec(readFileSync(v2, 'utf8')) ?? []) : []
      if (micros !== undefined) return Number(micros) * 1000
    }
  throw new Error(`no cgroup of container "${container}" in ${pods.join(', ')}`)
}

async function webLoadArchive(): Promise<string> {
  const { 'web-load': program } = await ensurePrograms(['web-load'])
  const version = createHash('sha256').update(program).digest('hex').slice(0, 16)
  const file = join(cacheDir(), 'images', `web-load-${version}.tar`)
  if (existsSync(file)) return file
  const layer = [{ path: 'web-load', file: program, mode: 0o755 }]
  await writeImageArchive(file, [{ tags: [image], layers: [layer], entrypoint: ['/web-load'], user: '65532' }])
  return file
}

function placement(spec: object): Manifest {
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'Placement',
    metadata: { name: 'divided' },
    spec: {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'divided' } },
      move: { drainSeconds: 5 },
      ...spec,
    },
  }
}

const labels = { app: 'web' }

const container = {
  name: 'main',
  image,
  resources: { requests: { cpu: `${requestMilli}m` } },
  readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 2, timeoutSeconds: 20 },
}

const application: readonly Manifest[] = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas: minReplicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { terminationGracePeriodSeconds: 10, containers: [container] } },
    },
  },
  {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'web' },
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      minReplicas,
      maxReplicas,
      metrics: [
        {
          type: 'Resource',
          resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: targetPercent } },
        },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 30 } },
    },
  },
]
