// The names of single pods (`zk-0.zk`), asked in each of two members that reach each other's pods. Right is what the
// nameserver of a cluster answers where the same manifest runs.
import { mkdtempSync, writeFileSync } from 'node:fs'
import { Resolver } from 'node:dns/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { placedOnAnnotation } from '#crds/index.ts'
import { corefile } from '#syncer/member-dns/corefile.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { ensurePrograms, freePort, startProcess } from '#test/support/index.ts'
import { space, until, type Resource, type Space, type SyncedMembers } from '../syncers-of-members.ts'

const signal = new AbortController().signal
const names = ['east', 'west'] as const
type Member = (typeof names)[number]

/** By member, what it has of a workload that is in both. */
type Copies = Partial<
  Record<
    Member,
    {
      readonly replicas?: number
      readonly start?: number
      readonly ending?: { readonly ordinal: number; readonly since: string }
    }
  >
>

interface Case {
  readonly resource: Resource
  readonly object: KubeObject
  readonly copies: Copies
  /** Names of pods, below the namespace. */
  readonly names: readonly string[]
}

const pod = (app: string, more: object = {}): { metadata: object; spec: object } => ({
  metadata: { labels: { app } },
  spec: { containers: [{ name: 'main', image: 'example/any:1' }], ...more },
})

function set(name: string, serviceName: string, copies: Copies, start = 0): Case {
  const selector = { matchLabels: { app: serviceName } }
  const spec = {
    ...{ replicas: 3, serviceName, selector, template: pod(serviceName), podManagementPolicy: 'Parallel' },
    ordinals: { start },
  }
  const object = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name }, spec }
  const ordinals = [0, 1, 2, 3].map((i) => i + start)
  return { resource: 'statefulsets', object, copies, names: ordinals.map((i) => `${name}-${i}.${serviceName}`) }
}

function deployment(name: string, service: string, hostname: string | undefined, copies: Copies): Case {
  const selector = { matchLabels: { app: service } }
  const template = pod(service, { subdomain: service, ...(hostname !== undefined && { hostname }) })
  const object = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: { replicas: 2, selector, template } },
  }
  return { resource: 'deployments', object, copies, names: [`${hostname ?? name}.${service}`, service] }
}

/** Pods of all cases together, and the addresses that all their names together have. */
const [podCount, addressCount] = [15, 19]

const ending = { ordinal: 6, since: '2026-01-01T00:00:00Z' }
/** Services that publish pods before they are ready. */
const always: ReadonlySet<string> = new Set(['brokers'])
const cases: readonly Case[] = [
  // On its way from east to west, ordinal by ordinal.
  set('zk', 'zk', { east: { replicas: 2, start: 0 }, west: { replicas: 1, start: 2 } }),
  // A pod that ends next takes no new requests, but it still runs.
  set('kafka', 'brokers', { east: { replicas: 1, start: 5 }, west: { replicas: 2, start: 6, ending } }, 5),
  // Clients in another member.
  set('etcd', 'etcd', { west: {} }),
  deployment('named', 'hosts', 'main', { east: {} }),
  deployment('divided', 'parts', 'part', { east: { replicas: 1 }, west: { replicas: 1 } }),
  deployment('nameless', 'plain', undefined, { west: {} }),
]

/** `started`: members east and west. */
export function defineNamesOfPods(started: () => SyncedMembers): void {
  describe('the names of pods', function () {
    this.timeout(120_000)
    const stack = new AsyncDisposableStack()
    let system: SyncedMembers
    let attempts = 0
    /** By nameserver: resolves a name from a pod of the namespace. */
    const ask: Record<string, (name: string) => Promise<string[]>> = {}

    before(() => {
      system = started()
    })
    after(async function () {
      this.timeout(60_000)
      await stack.disposeAsync()
    })

    async function startNameserver(config: (port: number) => string, localAddress: string) {
      const port = await freePort('127.0.0.1')
      const dir = mkdtempSync(join(tmpdir(), 'kcp-names-'))
      writeFileSync(join(dir, 'Corefile'), config(port))
      const { coredns } = await ensurePrograms(['coredns'])
      const args = ['-conf', join(dir, 'Corefile')]
      stack.use(await startProcess({ name: `coredns-${port}`, command: coredns, args, logFile: join(dir, 'log') }))
      return async (name: string): Promise<string[]> => {
        const resolver = new Resolver({ timeout: 2000, tries: 1 })
        resolver.setServers([`127.0.0.1:${port}`])
        resolver.setLocalAddress(localAddress)
        return (await resolver.resolve4(name).catch(() => [])).sort()
      }
    }

    it('lead to the same pods in each member as in a cluster', async () => {
      const east = system.members['east']!
      // A repetition shall fail for its own reason, not because of what the attempt before has left.
      const attempt = ++attempts
      const own = `names-${attempt}`
      const [upstream, direct] = [space(system.up, own), space(east.client, own)]
      for (const at of [upstream, direct]) {
        await at.begin()
        for (const service of new Set(cases.map(({ object }) => appOf(object)))) {
          const publishNotReadyAddresses = always.has(service)
          const ports = [{ name: 'main', port: 80 }]
          const spec = { clusterIP: 'None', publishNotReadyAddresses, selector: { app: service }, ports }
          await at.create('services', { apiVersion: 'v1', kind: 'Service', metadata: { name: service }, spec })
        }
        for (const { resource, object, copies } of cases) {
          const placed = Object.entries(copies).map(([member, copy]) => [member, { state: 'Serving', ...copy }])
          const annotations = { [placedOnAnnotation]: JSON.stringify(Object.fromEntries(placed)) }
          const metadata = { ...object.metadata, ...(at === upstream && { annotations }) }
          await at.create(resource, { ...object, metadata })
        }
      }
      ask['cluster'] = await startNameserver(
        (port) =>
          `cluster.local:${port} {\n kubernetes cluster.local {\n ttl 0\n kubeconfig ${east.kubeconfig}\n }\n}\n`,
        '127.0.0.1',
      )
      for (const [index, member] of names.entries()) {
        const { client, kubelet, kubeconfig } = system.members[member]!
        const namespace = system.below(own)
        // The API refuses pods of a namespace until its controller has made this ServiceAccount.
        const account = { namespace, name: 'default' }
        await until(`a ServiceAccount in ${member}`, () => client.tryGet(gvrs.serviceaccounts, account, { signal }))
        kubelet.hold('asker')
        const podIP = `127.0.12.${10 * attempt + index}`
        const metadata = { name: 'asker', namespace }
        const { spec } = pod('asker')
        await client.create(gvrs.pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec }, { signal })
        const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] }
        await client.patch(gvrs.pods, metadata, 'merge', { status }, { subresource: 'status', signal })
        const options = { apiAddress: { host: '10.1.2.3', port: 7443 }, memberName: member, ready: '' }
        const kubernetes = `kubeconfig ${kubeconfig}`
        ask[member] = await startNameserver((port) => corefile({ ...options, port, kubernetes }), podIP)
      }
      const inCluster = await addresses([direct])
      const inMembers = await addresses(names.map((name) => space(system.members[name]!.client, system.below(own))))
      const allNames = cases.flatMap((one) => one.names)
      const found = (server: string): Promise<string[][]> =>
        Promise.all(allNames.map((name) => ask[server]!(`${name}.${own}.svc.cluster.local`)))
      const told = async (server: string, known: ReadonlyMap<string, string>): Promise<string[]> => {
        const pods = (await found(server)).map((all) => all.map((address) => known.get(address) ?? 'nobody').sort())
        return allNames.map((name, i) => `${name} ${pods[i]?.join() ?? ''}`)
      }
      await until('all names in the cluster', async () => (await found('cluster')).flat().length === addressCount)
      const right = await told('cluster', inCluster)
      for (const name of names) {
        let last: string[] = []
        await until(`the names in ${name}`, async () => {
          last = await told(name, inMembers)
          return last.join() === right.join()
        }).catch(() => expect(last, name).to.deep.equal(right))
      }
    })

    /** The workload of each pod, with the ordinal of a StatefulSet, by the address of the pod; once all pods have one. */
    async function addresses(at: readonly Space[]): Promise<Map<string, string>> {
      const pods = await until('addresses of pods', async () => {
        const all = (await Promise.all(at.map((one) => one.list('pods')))).flat()
        const own = all.filter(({ metadata }) => metadata.name !== 'asker' && metadata.deletionTimestamp === undefined)
        return own.length === podCount && own.every((one) => addressOf(one) !== undefined) && own
      })
      return new Map(pods.map((one) => [addressOf(one) ?? '', workloadOf(one.metadata.name ?? '')]))
    }
  })
}

function workloadOf(pod: string): string {
  return /^(.+-\d)$|^([a-z]+)-/.exec(pod)?.slice(1).find(Boolean) ?? pod
}

function addressOf(one: KubeObject): string | undefined {
  return (one['status'] as { podIP?: string } | undefined)?.podIP
}

function appOf({ spec }: KubeObject): string {
  return (spec as { template: { metadata: { labels: { app: string } } } }).template.metadata.labels.app
}
