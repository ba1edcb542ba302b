// Two members, each a real API server with our gateway beside it. Their syncers are played: the test writes what they
// would.
import { createHash, randomBytes } from 'node:crypto'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { clusterIdOf, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { nextIdentity, secretData, type GatewayIdentity } from '#syncer/gateway/gateway-identity.ts'
import { namespacesObject, peerObject } from '#syncer/gateway/gateway-objects.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { freePort, startCluster, startKcp, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { clientOf } from '#test/integration/syncer/ordinary-upstream.ts'

export const acme = clusterIdOf('acme')
export const bob = clusterIdOf('bob')
const signal = new AbortController().signal
const slices: GroupVersionResource = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }

export interface PlayedMember {
  readonly name: string
  readonly client: KubeClient
  readonly kubeconfig: string
  readonly gatewayPort: number
  readonly healthPort: number
  /** An address of this machine that an EndpointSlice may have. */
  readonly address: string
}

export async function playMember(name: string, stack: AsyncDisposableStack): Promise<PlayedMember> {
  const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
  const cluster = stack.use(await startCluster({ name, flags }))
  const client = await clientOf(cluster.kubeconfig, stack)
  for (const namespace of ['kcp-system', `${acme}-shop`, `${bob}-shop`])
    await apply(client, gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  return {
    name,
    client,
    kubeconfig: cluster.kubeconfig,
    gatewayPort: await freePort('0.0.0.0'),
    healthPort: await freePort('0.0.0.0'),
    address: cluster.hostAddress,
  }
}

export async function startGatewayOf(member: PlayedMember, more: readonly string[] = []): Promise<ManagedProcess> {
  const { name, kubeconfig, gatewayPort, healthPort } = member
  const ports = ['--port', String(gatewayPort), '--health-port', String(healthPort)]
  return startKcp(['gateway', '--kubeconfig', kubeconfig, ...ports, ...more], {
    name: `gateway-${name}`,
    ready: async () => (await readyz(member)) === 200,
    graceMs: 20_000,
  })
}

/** The status of /readyz; undefined if nothing answers. */
export async function readyz({ healthPort }: PlayedMember): Promise<number | undefined> {
  const response = await fetch(`http://127.0.0.1:${healthPort}/readyz`).catch(() => undefined)
  return response?.status
}

/** The value of a series of /metrics; 0 if it is not there. */
export async function metric({ healthPort }: PlayedMember, series: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1] ?? 0,
  )
}

export const newIdentity = (name: string): Promise<GatewayIdentity> => nextIdentity({}, name, Date.now())

export async function giveIdentity({ client }: PlayedMember, identity: GatewayIdentity): Promise<void> {
  await apply(client, gvrs.secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'kcp-gateway', namespace: 'kcp-system' },
    type: 'kubernetes.io/tls',
    data: secretData(identity),
  })
}

/** Tells the gateway of `member` of that of another one. */
export async function tellOfPeer(
  { client }: PlayedMember,
  peer: PlayedMember,
  { certificates, clusters }: { readonly certificates: readonly string[]; readonly clusters: readonly string[] },
): Promise<void> {
  const address = `127.0.0.1:${peer.gatewayPort}`
  await apply(client, gvrs.configmaps, peerObject({ name: peer.name, address, certificates, clusterIds: clusters }))
}

/** The gateway of `member` learns that another one is no peer any more. */
export async function forgetPeer({ client }: PlayedMember, peer: PlayedMember): Promise<void> {
  const { name = '', namespace = '' } = peerObject({ name: peer.name, clusterIds: [] }).metadata
  await client.delete(gvrs.configmaps, { name, namespace }, { signal })
}

/** Tells the gateway of `member` the usual names of namespaces that have other names there. */
export async function tellOfNamespaces(
  { client }: PlayedMember,
  names: Readonly<Record<string, string>>,
): Promise<void> {
  await apply(client, gvrs.configmaps, namespacesObject(names))
}

export async function addNamespace({ client }: PlayedMember, name: string): Promise<void> {
  await apply(client, gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
}

export interface PlayedSlice {
  readonly clusterId: string
  /** In the member. Default: ID-shop. */
  readonly namespace?: string
  /** The usual name of the namespace. Default: ID-shop. */
  readonly usual?: string
  readonly service: string
  readonly port: number
}

/** Pods of `from`: the gateway of `member` listens on the port. */
export async function addRemoteSlice(
  { client, address }: PlayedMember,
  from: PlayedMember,
  { clusterId, namespace = `${clusterId}-shop`, usual = `${clusterId}-shop`, service, port }: PlayedSlice,
): Promise<void> {
  await apply(client, slices, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-${from.name}`,
      namespace,
      labels: {
        'kcp.dev/managed': 'true',
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'kcp-syncer',
        'kcp.dev/member': from.name,
      },
      annotations: {
        'kcp.dev/gateway-target': JSON.stringify({ namespace: usual, service }),
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  })
}

export async function removeRemoteSlice(
  { client }: PlayedMember,
  from: PlayedMember,
  { clusterId, service }: Omit<PlayedSlice, 'port'>,
): Promise<void> {
  await client.delete(slices, { namespace: `${clusterId}-shop`, name: `${service}-${from.name}` }, { signal })
}

/** The pods of a Service of the member: one at its address, or none. */
export async function setLocalSlice(
  { client, address }: PlayedMember,
  { clusterId, namespace = `${clusterId}-shop`, service, port }: PlayedSlice,
  { hasPod }: { readonly hasPod: boolean },
): Promise<void> {
  const targetRef = { kind: 'Pod', namespace, name: service }
  await apply(client, slices, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${service}-abcde`,
      namespace,
      labels: {
        'kcp.dev/managed': 'true',
        'kubernetes.io/service-name': service,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port, protocol: 'TCP' }],
    endpoints: hasPod ? [{ addresses: [address], conditions: { ready: true }, targetRef }] : [],
  })
}

/** A pod with this address. */
export async function addPod(
  { client }: PlayedMember,
  {
    clusterId,
    namespace = `${clusterId}-shop`,
    name,
    address,
  }: Pick<PlayedSlice, 'clusterId' | 'namespace'> & { readonly name: string; readonly address: string },
): Promise<void> {
  const ref = { namespace, name }
  await client.create(
    gvrs.pods,
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...ref, labels: { 'kcp.dev/managed': 'true' } },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    },
    { signal },
  )
  const status = { phase: 'Running', podIP: address, podIPs: [{ ip: address }] }
  await client.patch(gvrs.pods, ref, 'merge', { status }, { subresource: 'status', signal })
}

export async function removePod(
  { client }: PlayedMember,
  { clusterId, name }: { readonly clusterId: string; readonly name: string },
): Promise<void> {
  await client.delete(gvrs.pods, { namespace: `${clusterId}-shop`, name }, { gracePeriodSeconds: 0, signal })
}

async function apply(client: KubeClient, gvr: GroupVersionResource, object: KubeObject): Promise<void> {
  const { namespace, name = '' } = object.metadata
  const ref = { name, ...(namespace !== undefined && { namespace }) }
  await client.patch(gvr, ref, 'apply', object, { fieldManager: 'test', force: true, signal })
}

/** A program in a pod of this machine. */
export async function listenAsPod(
  address: string,
  onConnection: (socket: Socket) => void,
  stack: AsyncDisposableStack,
): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    onConnection(socket)
  })
  server.listen(0, address)
  await once(server, 'listening')
  stack.defer(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

/** Sends back what comes, and ends when the client has. */
export const echo = (socket: Socket): void => void socket.pipe(socket)

/** A program in a pod that uses a Service. */
export function dial(port: number, localAddress = '127.0.12.99'): Socket {
  const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true })
  socket.on('error', () => undefined)
  return socket
}

/** The answer to one word, or the code of the error. */
export async function ask(port: number, localAddress?: string): Promise<string> {
  const socket = dial(port, localAddress)
  return await responseOn(socket, 'hello').finally(() => socket.destroy())
}

/** What comes back for a word on an open connection, or the code of the error. */
export function responseOn(socket: Socket, word: string): Promise<string> {
  return new Promise((resolve) => {
    let seen = ''
    const settle = (text: string): void => {
      clearTimeout(timer)
      socket.off('data', onData).off('error', onError).off('close', onClose)
      resolve(text)
    }
    const onData = (chunk: Buffer): void => {
      seen += chunk.toString()
      if (seen.length >= word.length) settle(seen)
    }
    const onError = (error: NodeJS.ErrnoException): void => settle(error.code ?? error.message)
    const onClose = (): void => settle('closed')
    const timer = setTimeout(() => settle('no answer'), 10_000)
    socket.on('data', onData).on('error', onError).on('close', onClose)
    socket.write(word)
  })
}

export async function untilAnswer(port: number, wanted: string, localAddress?: string): Promise<void> {
  await waitFor(async () => (await ask(port, localAddress)) === wanted, {
    what: `"${wanted}" from port ${port}`,
    deadlineMs: 15_000,
  })
}

export const someBytes = (count: number): Buffer => randomBytes(count)
export const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** All bytes until the other end has ended its direction. Rejects if the connection fails before. */
export async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
