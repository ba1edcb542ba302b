// Every kind of workload with stock kubectl on two real members with pods: it runs, its status and what the member
// makes of it are told, it moves or ends where it began, and nothing is left behind.
import { expect } from 'chai'
import { itInLongRun, kubectl, needsNodes, waitFor, type Cluster, type CommandResult } from '#test/support/index.ts'
import { createLogicalCluster, idOf, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import {
  bareObjects,
  database,
  namespace,
  runOnce,
  runPeriodically,
  staticVolume,
  webWithNeighbours,
} from './workload-manifests.ts'
import { untilClean } from './until-clean.ts'

interface Named {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string; readonly uid: string }[]
  }
  readonly spec: Readonly<Record<string, unknown>>
  readonly status?: Readonly<Record<string, unknown>>
}

endLabAfterAll()

describe('workloads of every kind in members', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let clusters: Lab
  let installation: Installation
  let alice = ''
  let id = ''

  before(async function () {
    this.timeout(300_000)
    await needsNodes(this)
    clusters = await lab()
    installation = stack.use(await installWithoutHost(clusters))
    await installation.join(clusters.east)
    await installation.join(clusters.west)
    await kubectl(installation.admin, ['wait', '--for=condition=Ready', 'memberclusters', '--all', '--timeout=60s'])
    await createLogicalCluster(installation, 'acme', 'alice')
    alice = await installation.tenant('acme', 'alice')
    id = await idOf(installation, 'acme')
    for (const name of ['shop', 'jobs', 'files'])
      await kubectl(alice, ['apply', '-f', '-'], { input: namespace(name, 'east') })
  })
  after(async function () {
    this.timeout(120_000)
    await stack.disposeAsync()
  })

  const as = (space: string, args: string[], options: object = {}): Promise<CommandResult> =>
    kubectl(alice, ['-n', space, ...args], options)
  const apply = (space: string, input: string): Promise<CommandResult> => as(space, ['apply', '-f', '-'], { input })
  const get = async (space: string, kind: string, name: string): Promise<Named> =>
    JSON.parse((await as(space, ['get', kind, name, '-o', 'json'])).stdout) as Named
  const list = async (space: string, kind: string, ...flags: string[]): Promise<Named[]> =>
    (JSON.parse((await as(space, ['get', kind, '-o', 'json', ...flags])).stdout) as { items: Named[] }).items
  const below = async (member: Cluster, space: string, kind: string): Promise<Named[]> => {
    const { stdout } = await member.kubectl(['get', kind, '-n', `${id}-${space}`, '-o', 'json'])
    return (JSON.parse(stdout) as { items: Named[] }).items
  }
  const until = <T>(what: string, attempt: () => Promise<T | undefined | false>, deadlineMs = 60_000): Promise<T> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs })
  const unchanged = async (space: string, input: string): Promise<void> => {
    const { code, stdout } = await as(space, ['diff', '-f', '-'], { input, expectCode: 'any' })
    expect([code, stdout]).to.deep.equal([0, ''])
  }

  describe('a StatefulSet', () => {
    const space = 'shop'
    const manifest = database()

    it('runs with stable names, its own addresses, and one claim per pod', async () => {
      for (const name of ['volume-0', 'volume-1']) await clusters.east.kubectl(['apply', '-f', '-'], staticVolume(name))
      await apply(space, manifest)
      await as(space, ['rollout', 'status', 'statefulset/db', '--timeout=90s'])
      await until('both pods', async () => (await list(space, 'pods', '-l', 'app=db')).length === 2)
      const owner = (await get(space, 'statefulset', 'db')).metadata
      for (const name of ['db-0', 'db-1'])
        expect((await get(space, 'pod', name)).metadata.ownerReferences?.[0]).to.include({
          kind: 'StatefulSet',
          uid: owner.uid,
        })
      for (const name of ['db-0.db', 'db-1.db.shop.svc.cluster.local'])
        await until(`${name} to be found`, () =>
          as(space, ['exec', 'db-1', '--', '/agnhost', 'connect', `${name}:8080`]),
        )
      await until('both claims to be bound upstream', async () => {
        const claims = await list(space, 'pvc')
        return claims.length === 2 && claims.every(({ status }) => status?.['phase'] === 'Bound')
      })
    })

    it('keeps what its tenant wrote, through updates, their history and back', async () => {
      await unchanged(space, manifest)
      await as(space, ['set', 'env', 'statefulset/db', 'VERSION=2'])
      await as(space, ['rollout', 'status', 'statefulset/db', '--timeout=90s'])
      await until('two revisions', async () => {
        const history = (await as(space, ['rollout', 'history', 'statefulset/db'])).stdout
        return /^1\s/m.test(history) && /^2\s/m.test(history)
      })
      await as(space, ['rollout', 'undo', 'statefulset/db'])
      await as(space, ['rollout', 'status', 'statefulset/db', '--timeout=90s'])
      await unchanged(space, manifest)
    })

    it('leaves its pods when it is deleted with --cascade=orphan, and the next one adopts them as they run', async () => {
      const uidsOf = (pods: readonly Named[]): string[] => pods.map(({ metadata }) => metadata.uid).sort()
      const before = {
        shown: uidsOf(await list(space, 'pods')),
        running: uidsOf(await below(clusters.east, space, 'pods')),
      }
      await as(space, ['delete', 'statefulset', 'db', '--cascade=orphan', '--timeout=60s'])
      expect(await below(clusters.east, space, 'statefulset'), 'copies in the member').to.have.length(0)
      for (const { metadata } of await list(space, 'pods')) expect(metadata).to.not.have.property('ownerReferences')
      await as(space, ['exec', 'db-0', '--', '/agnhost', 'connect', 'db-1.db:8080'])
      expect(uidsOf(await list(space, 'pods')), 'pods upstream').to.deep.equal(before.shown)
      await apply(space, manifest)
      await as(space, ['rollout', 'status', 'statefulset/db', '--timeout=90s'])
      const { uid } = (await get(space, 'statefulset', 'db')).metadata
      await until('the pods to be adopted', async () =>
        (await list(space, 'pods')).every(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid),
      )
      expect(uidsOf(await list(space, 'pods')), 'pods upstream').to.deep.equal(before.shown)
      expect(uidsOf(await below(clusters.east, space, 'pods')), 'pods in the member').to.deep.equal(before.running)
      await unchanged(space, manifest)
    })

    it('keeps its claims, and their data, when it is deleted', async () => {
      const before = (await list(space, 'pvc')).map(({ metadata }) => metadata.uid)
      await as(space, ['delete', 'statefulset', 'db', '--timeout=60s'])
      await until('its pods to end', async () => (await list(space, 'pods')).length === 0)
      expect((await list(space, 'pvc')).map(({ metadata }) => metadata.uid)).to.deep.equal(before)
      expect(await below(clusters.east, space, 'pvc')).to.have.length(2)
      await as(space, ['delete', 'pvc', '--all', '--timeout=60s'])
      await untilClean(clusters.east, [id])
    })

    // test/integration/syncer/move.test.ts moves one with fewer checks.
    itInLongRun('moves ordinal by ordinal: each ends once, and never runs twice', async () => {
      // What another try has left, in either member.
      await as(space, ['delete', 'statefulset', 'db', '--ignore-not-found', '--timeout=60s'])
      await untilClean(clusters.west, [id])
      await apply(space, database({ withClaims: false }))
      await as(space, ['rollout', 'status', 'statefulset/db', '--timeout=90s'])
      const first = await below(clusters.east, space, 'pods')
      expect(first.map(({ metadata }) => metadata.name).sort()).to.include.members(['db-0', 'db-1'])
      await as(space, ['annotate', 'statefulset', 'db', 'kcp.dev/clusters=west'])
      const uids = new Map<string, Set<string>>()
      let fewest = Infinity
      await until(
        'the pods in the other member',
        async () => {
          // West first: what runs there has ended in east before. And once more after it: of two pods, one is there at
          // any time.
          const west = await below(clusters.west, space, 'pods')
          const east = await below(clusters.east, space, 'pods')
          const later = await below(clusters.west, space, 'pods')
          fewest = Math.min(fewest, new Set([...east, ...later].map(({ metadata }) => metadata.name)).size)
          for (const { metadata } of [...first, ...west, ...east])
            uids.set(metadata.name, (uids.get(metadata.name) ?? new Set()).add(metadata.uid))
          const twice = west.filter((pod) => east.some(({ metadata }) => metadata.name === pod.metadata.name))
          expect(twice, 'ordinals that run twice').to.deep.equal([])
          return east.length === 0 && west.length === 2
        },
        150_000,
      )
      expect([...uids.values()].map(({ size }) => size)).to.deep.equal([2, 2])
      expect(fewest, 'the fewest pods that were there').to.be.at.least(1)
      await as(space, ['rollout', 'status', 'statefulset/db', '--timeout=90s'])
      await as(space, ['delete', '-f', '-', '--timeout=60s'], { input: database({ withClaims: false }) })
    })
  })

  describe('DaemonSets, ReplicaSets and pods', () => {
    const space = 'shop'
    const manifest = bareObjects()

    it('run, with their status and their pods', async () => {
      await apply(space, manifest)
      await as(space, ['rollout', 'status', 'daemonset/agent', '--timeout=90s'])
      await as(space, ['wait', '--for=condition=Ready', 'pod/bare', '--timeout=60s'])
      await until(
        'the replicas',
        async () => (await get(space, 'replicaset', 'crowd')).status?.['availableReplicas'] === 2,
      )
      await unchanged(space, manifest)
      expect((await as(space, ['logs', 'bare'])).stdout).to.contain('Started HTTP server')
      expect((await as(space, ['exec', 'bare', '--', '/agnhost', 'help'])).stdout).to.contain('Usage')
    })

    it('show what the member says about them', async () => {
      await until('the Events of the pod', async () => {
        const { stdout } = await as(space, ['describe', 'pod', 'bare'])
        return /Successfully assigned shop\/bare/.test(stdout) && /Started container/.test(stdout)
      })
      expect((await as(space, ['get', 'events', '-o', 'json'])).stdout).to.not.contain(id)
    })

    it('say which image cannot be pulled', async () => {
      // A connection there is refused at once; a name that does not exist is looked up for ten seconds.
      const refusing = '127.0.0.1:9'
      await as(space, ['run', 'unpulled', `--image=${refusing}/none:1`, '--restart=Never'])
      await until('the reason', async () => {
        const { stdout } = await as(space, ['describe', 'pod', 'unpulled'])
        return (
          stdout.includes(`Failed to pull image "${refusing}/none:1"`) && /ErrImagePull|ImagePullBackOff/.test(stdout)
        )
      })
      await as(space, ['delete', 'pod', 'unpulled', '--grace-period=1'])
    })

    it('take changes of what can be changed', async () => {
      await as(space, ['label', 'pod', 'bare', 'colour=red'])
      await until('the label in the member', async () => {
        const { stdout } = await clusters.east.kubectl(['get', 'pods', '-n', `${id}-${space}`, '-l', 'colour=red'])
        return stdout.includes('bare')
      })
      await as(space, ['scale', 'replicaset/crowd', '--replicas=1'])
      await until('one replica', async () => (await list(space, 'pods', '-l', 'app=crowd')).length === 1)
      await as(space, ['set', 'env', 'daemonset/agent', 'VERSION=2'])
      await as(space, ['rollout', 'status', 'daemonset/agent', '--timeout=90s'])
      await as(space, ['rollout', 'undo', 'daemonset/agent'])
      await as(space, ['rollout', 'status', 'daemonset/agent', '--timeout=90s'])
    })

    it('a pod stays where it runs, and ends when it is deleted, on either side', async () => {
      await as(space, ['annotate', 'pod', 'bare', 'kcp.dev/clusters=west'])
      await as(space, ['delete', 'pod', 'bare', '--timeout=60s'])
      expect((await below(clusters.east, space, 'pods')).map(({ metadata }) => metadata.name)).to.not.include('bare')
      await apply(space, manifest)
      await as(space, ['wait', '--for=condition=Ready', 'pod/bare', '--timeout=60s'])
      await clusters.east.kubectl(['delete', 'pod', 'bare', '-n', `${id}-${space}`])
      await until('the end of the pod upstream', async () => {
        const pods = await list(space, 'pods')
        return !pods.some(({ metadata }) => metadata.name === 'bare')
      })
    })

    it('a pod that names its node is refused', async () => {
      const template = { labels: { app: 'pinned' } }
      const spec = { nodeName: 'east-node', containers: [{ name: 'c', image: 'any.example/any' }] }
      const pinned = {
        apiVersion: 'apps/v1',
        kind: 'DaemonSet',
        metadata: { name: 'pinned' },
        spec: { selector: { matchLabels: template.labels }, template: { metadata: template, spec } },
      }
      const { stderr } = await as(space, ['apply', '-f', '-'], { input: pinned, expectCode: 'any' })
      expect(stderr).to.contain('nodeName "east-node" is not allowed')
      await as(space, ['delete', '-f', '-', '--timeout=60s', '--ignore-not-found'], { input: manifest })
    })
  })

  describe('Jobs and CronJobs', () => {
    const space = 'jobs'

    it('a Job runs once, wherever its tenant wants it later, and goes after its time to live', async () => {
      await apply(space, runOnce({ ttlSeconds: 10 }))
      await as(space, ['wait', '--for=condition=Complete', 'job/once', '--timeout=60s'])
      await as(space, ['annotate', 'job', 'once', 'kcp.dev/clusters=west'])
      expect((await as(space, ['logs', 'job/once'])).stdout).to.contain('Usage')
      expect((await get(space, 'job', 'once')).status).to.include({ succeeded: 1 })
      const [copy] = await below(clusters.east, space, 'jobs')
      expect(copy?.spec).to.not.have.property('ttlSecondsAfterFinished')
      await as(space, ['wait', '--for=delete', 'job/once', '--timeout=60s'])
      await until('the copy to go', async () => (await below(clusters.east, space, 'jobs')).length === 0)
      expect(await below(clusters.west, space, 'pods')).to.have.length(0)
    })

    // Up to a minute until the first Job. application.test.ts runs a CronJob, too.
    itInLongRun('a CronJob makes Jobs that its tenant sees, and moves on when they have ended', async () => {
      await apply(space, runPeriodically())
      const job = await until(
        'the first Job',
        async () => (await list(space, 'jobs')).find(({ status }) => status?.['succeeded'] === 1),
        90_000,
      )
      const owner = await get(space, 'cronjob', 'tick')
      expect(job.metadata.ownerReferences?.[0]).to.include({ kind: 'CronJob', uid: owner.metadata.uid })
      expect((await as(space, ['logs', `job/${job.metadata.name}`])).stdout).to.contain('Usage')
      await unchanged(space, runPeriodically())
      await as(space, ['create', 'job', 'by-hand', '--from=cronjob/tick'])
      await as(space, ['wait', '--for=condition=Complete', 'job/by-hand', '--timeout=60s'])
      await as(space, ['annotate', 'cronjob', 'tick', 'kcp.dev/clusters=west'])
      await until(
        'the CronJob in the other member',
        async () => (await below(clusters.west, space, 'cronjobs')).length === 1,
      )
      expect(await below(clusters.east, space, 'cronjobs')).to.have.length(0)
      await as(space, ['delete', 'cronjob,job', '--all', '--timeout=60s'])
    })
  })

  describe('what belongs to a workload', () => {
    const space = 'files'
    const manifest = webWithNeighbours()

    it('follows it, and its status comes back', async () => {
      await clusters.east.kubectl(['apply', '-f', '-'], staticVolume('volume-files'))
      await apply(space, manifest)
      await as(space, ['rollout', 'status', 'deployment/web', '--timeout=90s'])
      await as(space, ['wait', '--for=jsonpath={.status.phase}=Bound', 'pvc/files', '--timeout=30s'])
      expect((await get(space, 'pvc', 'files')).spec).to.include({ volumeName: 'volume-files' })
      await until('the volume to be shown', async () => {
        const { stdout } = await as(space, ['get', 'pv', 'volume-files', '--no-headers', '--ignore-not-found'])
        return /1Mi +RWO +Retain +Bound +files\/files +kept-by-hand/.test(stdout)
      })
      await until('the budget', async () => (await get(space, 'pdb', 'web')).status?.['currentHealthy'] !== undefined)
      for (const kind of ['ingresses', 'networkpolicies', 'hpa', 'pdb'])
        expect(await below(clusters.east, space, kind), kind).to.have.length(1)
      const secrets = (await below(clusters.east, space, 'secrets')).map(({ metadata }) => metadata.name)
      expect(secrets).to.include('certificate')
    })

    it('its autoscaler sets the replicas, and they are told upstream', async () => {
      await until('two replicas', async () => {
        const { spec, status } = await get(space, 'deployment', 'web')
        return spec['replicas'] === 2 && status?.['availableReplicas'] === 2
      })
    })

    it('shows the addresses of an Ingress', async () => {
      const status = { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } }
      await clusters.east.kubectl([
        ...['patch', 'ingress', 'web', '-n', `${id}-${space}`, '--subresource=status', '--type=merge'],
        ...['-p', JSON.stringify({ status })],
      ])
      await until('the address', async () => (await as(space, ['get', 'ingress'])).stdout.includes('203.0.113.7'))
    })

    it('goes with it', async () => {
      await as(space, ['delete', '-f', '-', '--timeout=60s'], { input: manifest })
      await as(space, ['wait', '--for=delete', 'pv/volume-files', '--timeout=30s'])
    })
  })

  describe('at the end', () => {
    it('nothing is left in the members', async () => {
      await kubectl(alice, ['delete', 'namespace', 'shop', 'jobs', 'files', '--timeout=90s'])
      for (const member of [clusters.east, clusters.west]) await untilClean(member, [id])
    })
  })
})
