import { mkdtempSync, writeFileSync } from 'node:fs'
import { Resolver } from 'node:dns/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { downstreamNamespace } from '#crds/index.ts'
import { corefile } from '#syncer/member-dns/corefile.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { ensurePrograms, freePort, startCluster, startProcess, waitFor } from '#test/support/index.ts'
import { clientOf } from './ordinary-upstream.ts'

const signal = new AbortController().signal
const acme = clusterIdOf('acme')
const bob = clusterIdOf('bob')
/** The nameserver recognizes a pod by its source address. */
const addresses = { acme: '127.0.11.1', bob: '127.0.11.2', stranger: '127.0.11.3' }
type Asker = keyof typeof addresses

const aliases = {
  'to-own': `web.${acme}-shop.svc.cluster.local`,
  'to-own-other': `cache.${acme}-other.svc.cluster.local.`,
  'to-own-absolute': 'web.shop.svc.cluster.local',
  'to-own-zone': `db.${acme}-shop.svc.kcp`,
  'to-api': `kubernetes.${acme}-default.svc.cluster.local`,
  'to-world': 'example.com',
  'to-bob': `web.${bob}-shop.svc.kcp`,
  'to-bob-dot': `web.${bob}-shop.svc.kcp.`,
  'to-bob-view': `web.shop.${bob}.kcp`,
  'to-bob-local': `web.${bob}-shop.svc.cluster.local`,
  'to-bob-zone': `web.${bob}-shop.svc`,
  'to-member': 'kubernetes.default.svc.kcp',
  'to-member-local': 'kubernetes.default.svc.cluster.local',
  'to-chain': `to-bob.${acme}-shop.svc.kcp`,
  'to-chain-local': `to-bob.${acme}-shop.svc.cluster.local`,
  'to-chain-of-three': `to-chain-local.${acme}-shop.svc.kcp`,
  'to-world-chain': 'alias.example.com',
} as const

const aliasRows: readonly [keyof typeof aliases, string][] = [
  ['to-own', 'acme/shop/web'],
  ['to-own-other', 'acme/other/cache'],
  ['to-own-absolute', 'acme/shop/web'],
  ['to-own-zone', 'acme/shop/db'],
  ['to-api', '10.1.2.3'],
  ['to-world', '192.0.2.1'],
  ['to-bob', ''],
  ['to-bob-dot', ''],
  ['to-bob-view', ''],
  ['to-bob-local', ''],
  ['to-bob-zone', ''],
  ['to-member', ''],
  ['to-member-local', '10.1.2.3'],
  ['to-chain', ''],
  ['to-chain-local', ''],
  ['to-chain-of-three', ''],
  ['to-world-chain', ''],
]

/** Of 52 to 63 characters. */
const longNamespaces = Array.from({ length: 12 }, (_, index) => `b${'-long'.repeat(20).slice(0, 50 + index)}z`)
const ownNamespace: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kcp-system' } }

describe('the nameserver of a member', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  let port: number
  const clusterIPs: Record<string, string> = {}

  const ask = async (from: Asker, name: string): Promise<string> => {
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    resolver.setServers([`127.0.0.1:${port}`])
    resolver.setLocalAddress(addresses[from])
    try {
      // An alias without an address resolves to an empty list.
      const [address = ''] = await resolver.resolve4(name)
      return Object.entries(clusterIPs).find(([, ip]) => ip === address)?.[0] ?? address
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? String(error)
    }
  }

  before(async function () {
    this.timeout(300_000)
    const cluster = stack.use(
      await startCluster({ name: 'dns', flags: { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] } }),
    )
    const client = await clientOf(cluster.kubeconfig, stack)
    await fill(client, acme, 'shop', addresses.acme, ['web', 'db'])
    await fill(client, acme, 'other', undefined, ['cache'])
    await fill(client, bob, 'shop', addresses.bob, ['web'])
    await fill(client, acme, 'monitoring-prod', undefined, ['grafana'])
    for (const namespace of longNamespaces) await fill(client, acme, namespace, undefined, ['far'])
    await fillExported(client)
    await fillAliases(client)
    await client.create(gvrs.namespaces, ownNamespace, { signal })
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP' },
    ]
    const own = await client.create<KubeObject>(
      gvrs.services,
      {
        ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'kcp-dns', namespace: 'kcp-system' } },
        spec: { selector: { app: 'dns' }, ports },
      },
      { signal },
    )
    clusterIPs['nameserver'] = (own['spec'] as { clusterIP: string }).clusterIP
    port = await freePort('127.0.0.1')
    const forwardPort = await freePort('127.0.0.1')
    const dir = mkdtempSync(join(tmpdir(), 'kcp-dns-'))
    const config = corefile({
      apiAddress: { host: '10.1.2.3', port: 7443 },
      memberName: 'east',
      port,
      forward: `127.0.0.1:${forwardPort}`,
      kubernetes: `kubeconfig ${cluster.kubeconfig}`,
      ready: '',
    })
    // The member's own nameserver: it knows one name, and resolves every address to a name of bob.
    const world = `.:${forwardPort} {\n template IN A example.com {\n match ^example[.]com[.]$\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n fallthrough\n }\n template IN ANY alias.example.com {\n answer "{{ .Name }} 60 IN CNAME web.${bob}-shop.svc.kcp."\n }\n template IN PTR in-addr.arpa {\n answer "{{ .Name }} 60 IN PTR web.${bob}-shop.svc.cluster.local."\n }\n template ANY ANY {\n rcode NXDOMAIN\n }\n}\n`
    writeFileSync(join(dir, 'Corefile'), config + world)
    const { coredns } = await ensurePrograms(['coredns'])
    stack.use(
      await startProcess({
        name: 'coredns',
        command: coredns,
        args: ['-conf', join(dir, 'Corefile')],
        logFile: join(dir, 'log'),
      }),
    )
    await waitFor(async () => (await ask('acme', 'web.shop.svc.cluster.local')) === 'acme/shop/web', {
      what: `the nameserver (log in ${dir})`,
      deadlineMs: 20_000,
    })
  })
  after(async () => await stack.disposeAsync())

  async function fill(
    client: KubeClient,
    id: string,
    namespace: string,
    podIP: string | undefined,
    names: string[],
  ): Promise<void> {
    const space = downstreamNamespace(id as typeof acme, namespace)
    const create = async (
      gvr: (typeof gvrs)[keyof typeof gvrs],
      object: Partial<KubeObject>,
      name: string,
    ): Promise<KubeObject> =>
      await client.create(
        gvr,
        {
          apiVersion: 'v1',
          kind: '',
          metadata: { name, ...(gvr.resource !== 'namespaces' && { namespace: space }) },
          ...object,
        },
        { signal },
      )
    await create(gvrs.namespaces, { kind: 'Namespace' }, space)
    for (const name of names) {
      const service = await create(
        gvrs.services,
        { kind: 'Service', spec: { selector: { app: name }, ports: [{ name: 'http', port: 80 }] } },
        name,
      )
      clusterIPs[`${id === acme ? 'acme' : 'bob'}/${namespace}/${name}`] = (
        service['spec'] as { clusterIP: string }
      ).clusterIP
    }
    if (podIP === undefined) return
    await create(gvrs.pods, { kind: 'Pod', spec: { containers: [{ name: 'c', image: 'i' }] } }, 'client')
    const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] }
    await client.patch(
      gvrs.pods,
      { namespace: space, name: 'client' },
      'merge',
      { status },
      { subresource: 'status', signal },
    )
  }

  /**
   * Creates what the syncer creates for an exported headless Service `db` with pods in the members east, which is this
   * one, and west.
   */
  async function fillExported(client: KubeClient): Promise<void> {
    const namespace = `${acme}-shop`
    const slice = async (service: string, endpoints: [address: string, hostname: string][]): Promise<void> => {
      const spec = { clusterIP: 'None', ports: [{ name: 'http', port: 80 }] }
      await client.create(gvrs.services, named(service, spec), { signal })
      const object = {
        ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
        metadata: {
          ...{ name: `${service}-${endpoints[0]?.[1] ?? ''}`, namespace },
          labels: { 'kubernetes.io/service-name': service },
        },
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        endpoints: endpoints.map(([address, hostname]) => ({
          ...{ addresses: [address], hostname, conditions: { ready: true } },
        })),
      }
      await client.create(gvrs.endpointslices, object, { signal })
    }
    const named = (name: string, spec: object): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace } },
      spec,
    })
    await slice('data', [['10.7.0.1', 'data-0']])
    await slice('clusterset--data', [['10.7.1.1', 'data-0--west']])
    const plain = await client.create<KubeObject>(
      gvrs.services,
      named('clusterset--web', { ports: [{ name: 'http', port: 80 }] }),
      { signal },
    )
    clusterIPs['acme/shop/clusterset--web'] = (plain['spec'] as { clusterIP: string }).clusterIP
  }

  /** Services of type ExternalName, as they are in the member: the syncer lets fewer pass. */
  async function fillAliases(client: KubeClient): Promise<void> {
    for (const [name, externalName] of Object.entries(aliases))
      await client.create(
        gvrs.services,
        {
          ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: `${acme}-shop` } },
          spec: { type: 'ExternalName', externalName },
        },
        { signal },
      )
  }

  const rows: [Asker, string, string][] = [
    ['acme', 'web.shop.svc.cluster.local', 'acme/shop/web'],
    ['bob', 'web.shop.svc.cluster.local', 'bob/shop/web'],
    ['acme', 'cache.other.svc.cluster.local', 'acme/other/cache'],
    ['acme', `web.shop.${acme}.kcp`, 'acme/shop/web'],
    ['acme', `cache.other.svc.${acme}.kcp`, 'acme/other/cache'],
    ['acme', `cache.other.svc.cluster.local.${acme}.kcp`, 'acme/other/cache'],
    ['bob', `web.shop.${bob}.kcp`, 'bob/shop/web'],
    ['acme', 'web.shop.svc.clusterset.local', 'acme/shop/clusterset--web'],
    ['acme', `web.shop.svc.clusterset.local.${acme}.kcp`, 'acme/shop/clusterset--web'],
    ['acme', `web.shop.svc.clusterset.local.shop.${acme}.kcp`, 'ENOTFOUND'],
    ['acme', 'data.shop.svc.clusterset.local', '10.7.1.1'],
    ['acme', 'data-0.east.data.shop.svc.clusterset.local', '10.7.0.1'],
    ['acme', 'data-0.west.data.shop.svc.clusterset.local', '10.7.1.1'],
    ['acme', `data-0.east.data.shop.svc.clusterset.local.${acme}.kcp`, '10.7.0.1'],
    ['acme', `data-0.west.data.shop.svc.clusterset.local.${acme}.kcp`, '10.7.1.1'],
    ['acme', 'data-0.north.data.shop.svc.clusterset.local', ''],
    ['acme', 'db.shop.svc.clusterset.local', ''],
    ['acme', `db.shop.svc.clusterset.local.${acme}.kcp`, 'ENOTFOUND'],
    ['acme', 'shop.svc.clusterset.local', 'ENOTFOUND'],
    ['bob', 'web.shop.svc.clusterset.local', ''],
    ['bob', 'data-0.west.data.shop.svc.clusterset.local', ''],
    ['bob', `web.shop.svc.clusterset.local.${acme}.kcp`, 'ENOTFOUND'],
    ['stranger', 'web.shop.svc.clusterset.local', 'ETIMEOUT'],
    ['acme', 'kubernetes.default.svc.cluster.local', '10.1.2.3'],
    ['acme', `kubernetes.default.svc.${acme}.kcp`, '10.1.2.3'],
    ['acme', `kubernetes.default.${acme}.kcp`, '10.1.2.3'],
    // As the kubelet writes the name of a pod into its /etc/hosts.
    ['acme', `data-0.data.${acme}-shop.svc.cluster.local`, '10.7.0.1'],
    ['acme', `web.${acme}-shop.svc.cluster.local`, 'acme/shop/web'],
    ['acme', `cache.${acme}-other.svc.cluster.local`, 'acme/other/cache'],
    ['acme', `nothing.${acme}-shop.svc.cluster.local`, 'ENOTFOUND'],
    ['bob', `data-0.data.${acme}-shop.svc.cluster.local`, ''],
    ['stranger', `web.${acme}-shop.svc.cluster.local`, 'ETIMEOUT'],
    // A namespace whose name begins like one in a member.
    ['acme', 'grafana.monitoring-prod.svc.cluster.local', 'acme/monitoring-prod/grafana'],
    ['acme', `grafana.monitoring-prod.${acme}.kcp`, 'acme/monitoring-prod/grafana'],
    ...longNamespaces.flatMap((namespace): [Asker, string, string][] => [
      ['acme', `far.${namespace}.svc.cluster.local`, `acme/${namespace}/far`],
      ['acme', `far.${namespace}.svc.cluster.local.${acme}.kcp`, `acme/${namespace}/far`],
      ['acme', `far.${namespace}.svc.${acme}.kcp`, `acme/${namespace}/far`],
      ['acme', `far.${namespace}.${acme}.kcp`, `acme/${namespace}/far`],
      ['bob', `far.${namespace}.svc.cluster.local`, ''],
    ]),
    ['acme', `web.${acme}-shop.svc._kcp`, 'ENOTFOUND'],
    ['acme', `web.${bob}-shop.svc._kcp`, 'ENOTFOUND'],
    ['acme', `WEB.${bob.toUpperCase()}-shop.SVC.Kcp`, 'ENOTFOUND'],
    // What charts call the DNS of their cluster.
    ['acme', 'kube-dns.kube-system.svc.cluster.local', 'nameserver'],
    ['bob', 'kube-dns.kube-system.svc.cluster.local', 'nameserver'],
    ['acme', `kube-dns.kube-system.svc.cluster.local.${acme}.kcp`, 'nameserver'],
    ['acme', `kube-dns.kube-system.svc.${acme}.kcp`, 'nameserver'],
    ['acme', `kube-dns.kube-system.${acme}.kcp`, 'nameserver'],
    ['acme', 'other.kube-system.svc.cluster.local', ''],
    ['bob', `kube-dns.kube-system.${acme}.kcp`, 'ENOTFOUND'],
    ['stranger', `kube-dns.kube-system.${acme}.kcp`, 'ETIMEOUT'],
    ['acme', 'example.com', '192.0.2.1'],
    ['acme', `example.com.shop.${acme}.kcp`, 'ENOTFOUND'],
    ['acme', `example.com.${acme}.kcp`, 'ENOTFOUND'],
    ['acme', `nothing.shop.${acme}.kcp`, 'ENOTFOUND'],
    ['acme', 'nothing.example', 'ENOTFOUND'],
    ['bob', `db.shop.${bob}.kcp`, 'ENOTFOUND'],
    ['bob', `web.shop.${acme}.kcp`, 'ENOTFOUND'],
    ['bob', `web.${acme}-shop.svc.kcp`, 'ENOTFOUND'],
    ['bob', `web.${acme}-shop.svc.cluster.local`, ''],
    ['bob', 'db.shop.svc.cluster.local', ''],
    ['stranger', 'web.shop.svc.cluster.local', 'ETIMEOUT'],
    ['stranger', `web.shop.${acme}.kcp`, 'ETIMEOUT'],
    ['stranger', 'example.com', '192.0.2.1'],
  ]
  it('gives the ports of an exported Service and the names of its pods', async () => {
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    resolver.setServers([`127.0.0.1:${port}`])
    resolver.setLocalAddress(addresses.acme)
    const found = await resolver.resolveSrv(`_http._tcp.data.shop.svc.clusterset.local.${acme}.kcp`)
    expect(found.map(({ name, port: of }) => [name, of])).to.deep.equal([
      [`data-0--west.clusterset--data.${acme}-shop.svc.kcp`, 80],
    ])
    expect(await ask('acme', found[0]?.name ?? '')).to.equal('10.7.1.1')
  })

  it('gives ports by names of the search domains, which resolvers try because the absolute name does not exist', async () => {
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    resolver.setServers([`127.0.0.1:${port}`])
    resolver.setLocalAddress(addresses.acme)
    const ports = async (name: string): Promise<unknown> =>
      await resolver.resolveSrv(name).then(
        (found) => found.map(({ port: of }) => of),
        (error: unknown) => (error as NodeJS.ErrnoException).code,
      )
    const name = '_http._tcp.data.shop.svc.cluster.local'
    expect([await ports(name), await ports(`${name}.${acme}.kcp`)]).to.deep.equal(['ENOTFOUND', [80]])
  })

  it('does not resolve addresses to names, which would reveal names of other tenants', async () => {
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    resolver.setServers([`127.0.0.1:${port}`])
    resolver.setLocalAddress(addresses.acme)
    for (const address of ['10.0.0.7', '8.8.8.8', 'fd00::1'])
      expect(
        await resolver.reverse(address).catch((error: unknown) => (error as NodeJS.ErrnoException).code),
        address,
      ).to.equal('ENOTFOUND')
  })

  it('leads no ExternalName to a Service of another tenant or of the member, also through others', async () => {
    const names = (alias: string): readonly string[] => [
      `${alias}.shop.svc.cluster.local`,
      `${alias}.shop.${acme}.kcp`,
      `${alias}.${acme}-shop.svc.cluster.local`,
      `${alias}.${acme}-shop.svc.kcp`,
    ]
    const found = aliasRows.map(async ([alias]) => [
      alias,
      await Promise.all(names(alias).map((name) => ask('acme', name))),
    ])
    const expected = aliasRows.map(([alias, address]) => [alias, names(alias).map(() => address)])
    expect(await Promise.all(found)).to.deep.equal(expected)
  })

  for (const [from, name, expected] of rows) {
    it(`answers ${from} for ${name.replace(acme, 'ACME').replace(bob, 'BOB')}: ${expected}`, async () => {
      expect(await ask(from, name)).to.equal(expected)
    })
  }
})
