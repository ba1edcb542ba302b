// `kcp apiserver`: the virtual API server over Records in the host's etcd, registered with the host's aggregator.
import { ensureCrds } from '../../operator/index.ts'
import { kcpCrds, storageCrds } from '../../crds/index.ts'
import type { AddressPolicyOptions } from '../../egress/index.ts'
import type { ClusterId, ClusterName } from '../../apimachinery/meta/index.ts'
import { startControllers } from '../../controllers/index.ts'
import { openHostStore } from '../../store/host/index.ts'
import { createMetrics, type Logger } from '../../telemetry/index.ts'
import { createMembers, createVirtualApi, frontProxyFromHost, requireObjectBytes } from '../../virtualapi/index.ts'
import { openAuditLog, type AuditLogOptions } from './audit-log.ts'
import { register, serviceHosts, type Registration } from './api-service.ts'
import { installationKeys, publishAddress, type Host } from './host-installation.ts'
import { keepRenewed } from './keep-renewed.ts'
import { servingCertificateRenewal } from './serving-certificate.ts'

export interface ApiserverOptions {
  readonly host: Host
  readonly port: number
  readonly bindAddress: string
  /** Address at which the host's kube-apiserver and pods in members reach us. */
  readonly advertiseAddress: string
  /** Port of the published address; default: the one we listen on. */
  readonly advertisePort?: number
  /** What is applied in the host so that its aggregator finds us. */
  readonly register: Registration
  /** Where audit lines are written; absent: no audit lines. */
  readonly audit?: AuditLogOptions
  /** How much one logical cluster may keep, in bytes; absent: no limit. */
  readonly storageBytes?: number
  /** How long an Event is kept after it was last written. Default one hour. */
  readonly eventTtlMs?: number
  /** At which addresses tenants' webhooks may be called; absent: at public ones. */
  readonly egress?: AddressPolicyOptions
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface RunningApiserver extends AsyncDisposable {
  readonly port: number
  /** Rejects when a part of the server failed for good. */
  readonly failed: Promise<never>
}

/** Starts the server; resolves once it serves and is registered. */
export async function startApiserver(options: ApiserverOptions): Promise<RunningApiserver> {
  const { host, bindAddress, advertiseAddress, log, signal } = options
  const { client, transport } = host
  await using stack = new AsyncDisposableStack()
  const metrics = createMetrics()
  const audit = options.audit && stack.use(await openAuditLog(options.audit, { metrics, log }))
  await ensureCrds(client, { crds: [...kcpCrds(), ...storageCrds()], signal })
  const { pki, sealKey } = await installationKeys(client, signal)
  const frontProxy = stack.use(frontProxyFromHost({ client, log, signal }))
  await frontProxy.synced(signal)
  const store = stack.use(
    await openHostStore({
      client,
      sealKey,
      requireValue: requireObjectBytes,
      onProblem: (message, error) => log.warn(message, { error }),
      signal,
    }),
  )
  const api = stack.use(
    await createVirtualApi({
      store,
      pki,
      frontProxy: () => frontProxy.current(),
      members: () => createMembers({ transport, log, signal }),
      ...(audit && { audit }),
      ...(options.storageBytes !== undefined && { storageBytes: options.storageBytes }),
      ...(options.eventTtlMs !== undefined && { eventTtlMs: options.eventTtlMs }),
      ...(options.egress !== undefined && { egress: options.egress }),
      log,
      metrics,
      signal,
    }),
  )
  await api.follow(client)
  const hosts = [...new Set([advertiseAddress, bindAddress])].filter((name) => name !== '0.0.0.0' && name !== '::')
  const servingHosts = [...hosts, ...serviceHosts]
  const current = await pki.servingCertificate(servingHosts)
  const listener = stack.use(await api.listen({ host: bindAddress, port: options.port, ...current }))
  stack.use(keepRenewed([servingCertificateRenewal({ pki, hosts: servingHosts, listener, current, log })], { log }))
  stack.use(
    await startControllers({
      // They do what is done there by this one: tools that ignore its fields ignore these too.
      cluster: (name) => api.client(name as ClusterName, { userAgent: 'kube-controller-manager' }),
      rootCa: pki.servingCa,
      signClientRequest: ({ clusterId, ...request }) =>
        pki.signClientRequest({ ...request, realm: clusterId as ClusterId }),
      graph: api.graph,
      log,
      signal,
    }),
  )
  await publishAddress(client, `https://${advertiseAddress}:${options.advertisePort ?? listener.port}`, signal)
  await register(
    client,
    options.register,
    { address: advertiseAddress, port: listener.port, ca: pki.servingCa },
    signal,
  )
  const owned = stack.move()
  return { port: listener.port, failed: api.broken, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
